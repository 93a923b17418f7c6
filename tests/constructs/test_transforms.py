"""Lifted transformations that have no explicit form."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Outcome
from tests.constructs.convert import refusal
from tests.rewrite.projects import LINEN, caller, rewrite


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.share_scope(a, b)", "share_scope"),
        ("nn.fold_rngs(f)", "fold_rngs"),
        ("nn.jit(Layer)", "nn.jit"),
        ("nn.remat_scan(Layer, (2, n))", "remat_scan"),
        ("nn.map_variables(Layer, 'params', f)", "map_variables"),
        ("nn.cond(p, f, g, self, x)", "cond is not rewritten"),
        ("nn.switch(i, fs, self, x)", "switch is not rewritten"),
        ("nn.while_loop(f, g, self, x)", "while_loop is not rewritten"),
        ("nn.vjp(f, self, x)", "vjp is not rewritten"),
        ("nn.custom_vjp(f, fwd, bwd)", "custom_vjp is not rewritten"),
        ("nn.SpectralNorm(layer)", "SpectralNorm is not rewritten"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


@pytest.mark.parametrize("wrapper", ["SpectralNorm", "WeightNorm"])
def test_a_norm_around_a_layer_has_no_explicit_form(wrapper: str) -> None:
    body = f"nn.{wrapper}(nn.Dense(6))(x)"
    (found,) = rewrite({"m.py": LINEN + caller("Model", body)}).classes
    assert found.outcome is Outcome.REFUSED
    assert found.reason is not None
    assert wrapper in found.reason
