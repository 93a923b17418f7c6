"""Norms around a layer that a compact method builds in the wrapper's call."""

from __future__ import annotations

import pytest

from nnx_migrate.constructs.base import Code
from nnx_migrate.model import Confidence, Outcome
from tests.constructs.convert import converted
from tests.rewrite.projects import LINEN, caller, rewrite
from tests.rewrite.projects import explicit_source as rewrite_source


def outcome(body: str) -> Outcome:
    (found,) = rewrite({"m.py": LINEN + caller("Model", body)}).classes
    return found.outcome


@pytest.mark.parametrize("wrapper", ["SpectralNorm", "WeightNorm"])
def test_the_wrapper_gets_the_name_of_a_layer_of_the_enclosing_module(wrapper: str) -> None:
    code = rewrite_source(LINEN + caller("Model", f"nn.{wrapper}(nn.Dense(6))(x)")).code
    assert "self.Dense_0 = nnx.Linear(in_features, 6, rngs=rngs)" in code
    assert (
        f'self.{wrapper}_0 = nnm.{wrapper}(self.Dense_0, layer_name="Dense_0", rngs=rngs)' in code
    )


@pytest.mark.parametrize(
    "body",
    [
        'nn.WeightNorm(nn.Dense(6, name="Alpha"))(x)',
        'nn.WeightNorm(nn.Dense(6), name="last")(x)',
    ],
)
def test_a_layer_whose_name_comes_first_is_rewritten(body: str) -> None:
    assert outcome(body) is Outcome.REWRITTEN


@pytest.mark.parametrize(
    "body",
    [
        'nn.WeightNorm(nn.Dense(6, name="zeta"))(x)',
        'nn.WeightNorm(nn.Dense(6), name="A")(x)',
        'nn.WeightNorm(nn.Dense(6), name=f"a{self.name}")(x)',
        "[nn.WeightNorm(nn.Dense(6))(x) for _ in range(2)]",
        "nn.WeightNorm(d := nn.Dense(6))(x) + d(x)",
    ],
    ids=["layer last", "wrapper first", "computed name", "loop", "named before"],
)
def test_a_layer_whose_name_may_come_last_is_refused(body: str) -> None:
    assert outcome(body) is Outcome.REFUSED


@pytest.mark.parametrize(
    ("wrapper", "confidence"),
    [("SpectralNorm", Confidence.REVIEW), ("WeightNorm", Confidence.EXACT)],
)
def test_statistics_that_linens_init_may_move_ask_for_a_look(
    wrapper: str, confidence: Confidence
) -> None:
    found = converted(f"nn.{wrapper}(nn.Dense(4))")
    assert isinstance(found, Code)
    assert found.confidence is confidence
    assert any("update_stats=False" in one for one in found.findings) is (wrapper == "SpectralNorm")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("nn.SpectralNorm(nn.Dense(6))(x, update_stats=True)", Outcome.REFUSED),
        ("nn.SpectralNorm(nn.Dense(6))(x, update_stats=1)", Outcome.REFUSED),
        ("nn.SpectralNorm(nn.Dense(6))(x, update_stats=False)", Outcome.REWRITTEN),
        ("nn.SpectralNorm(nn.Dense(6))(x, update_stats=not x)", Outcome.REWRITTEN),
    ],
)
def test_statistics_that_linens_init_moves_for_certain_are_refused(
    body: str, expected: Outcome
) -> None:
    assert outcome(body) is expected
