"""Random programs in the lazy form compute what they computed before, bit for bit."""

from __future__ import annotations

import jax
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.rewrite.programs.comparing import Program
from tests.rewrite.programs.lazy import lazy_outcome, same_bits
from tests.rewrite.programs.lifts import lift_programs
from tests.rewrite.programs.rng import rng_programs
from tests.rewrite.programs.state import state_programs
from tests.rewrite.programs.test_programs import random_programs
from tests.rewrite.projects import rewrite_in_form, texts
from tests.sizes.networks import PARTS, networks, setups
from tests.sizes.test_property_layers import SHAPES, modules_of


@random_programs
@given(st.one_of(state_programs(), rng_programs(), lift_programs()))
def test_random_programs_compute_the_same(program: Program) -> None:
    event(lazy_outcome(program))


@random_programs
@given(st.one_of(networks(), setups()), SHAPES)
def test_random_networks_compute_the_same(text: str, shape: tuple[int, int, int]) -> None:
    files = {"parts.py": PARTS, "model.py": text}
    result = rewrite_in_form(files, "lazy")
    written = texts(result, files)
    x = jax.random.normal(jax.random.key(1), shape)
    found = []
    for parts, model in ((PARTS, text), (written["parts.py"], written["model.py"])):
        with pytest.MonkeyPatch.context() as patch:
            module = modules_of(patch, parts, model).Model()
            try:
                found.append(jax.jit(module.init_with_output)(jax.random.key(0), x))
            except Exception as error:  # noqa: BLE001 - compared with what Linen raises
                found.append(type(error).__name__)
    if isinstance(found[0], str):
        assert found[1] == found[0]
        event(f"Linen: {found[0]}")
    else:
        same_bits(found[0], found[1])
        event("same")
