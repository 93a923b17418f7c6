"""Random projects print after both rewrites what they printed before."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from benchmarks.generated import comparing
from benchmarks.generated.batches import programs_of, row
from benchmarks.generated.projects import Project, projects
from nnx_migrate.model import Finding, Outcome
from tests.rewrite.programs.lazy import lazy_outcome
from tests.rewrite.projects import rewrite_in_form, texts
from tests.rewrite.running import same_bits
from tests.sizes.networks import PARTS, networks, setups
from tests.sizes.test_property_layers import SHAPES, modules_of

# More of them: make generated N=10000
few = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("batch", range(4))
def test_random_projects_print_what_they_printed(batch: int) -> None:
    found = [row(batch, number, one) for number, one in enumerate(programs_of(batch, 5))]
    assert not any(one.faults for one in found), [one.faults for one in found]
    assert sum(not one.linen for one in found) > 1


@few
@given(projects())
def test_random_models_are_the_same_program_in_the_lazy_form(project: Project) -> None:
    event(lazy_outcome(project))


@few
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


def test_a_caller_that_is_left_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    project = programs_of(0, 1)[0]
    path = next(iter(dict(project.files)))
    left = Finding("call_site", path, 1, 1, Outcome.REFUSED, "used as before here")
    whole = comparing.rewritten(dict(project.files), "auto")
    changed = dataclasses.replace(whole, findings=(*whole.findings, left))
    monkeypatch.setattr(comparing, "rewritten", lambda files, form: changed)
    assert comparing.outcome(project, "auto", []).kind == "broken"
