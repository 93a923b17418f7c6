"""Random programs in the lazy form compute what they computed before, bit for bit."""

from __future__ import annotations

from typing import Any

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
    made: list[Any] = []
    for parts, model in ((PARTS, text), (written["parts.py"], written["model.py"])):
        with pytest.MonkeyPatch.context() as patch:
            module = modules_of(patch, parts, model).Model()
            try:
                made.append(jax.jit(module.init_with_output).lower(jax.random.key(0), x))
            except Exception as error:  # noqa: BLE001 - compared with what Linen raises
                made.append(type(error))
    linen, lazy = made
    if isinstance(linen, type):
        assert lazy is linen
        event(f"Linen: {linen.__name__}")
        return
    assert lazy.out_info == linen.out_info
    if lazy.as_text() != linen.as_text():  # another text may still compute the same
        same_bits(linen.compile()(jax.random.key(0), x), lazy.compile()(jax.random.key(0), x))
    event("same")
