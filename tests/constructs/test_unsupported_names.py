"""Names without a rewrite are refused, with a reason and a recipe."""

from __future__ import annotations

import pytest

from tests.constructs.convert import refusal


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.Fp8DotGeneral()", "8-bit"),
        ("getattr(nn, name)", "module flax.linen itself"),
        ("nn.intercept_methods(f)", "intercept_methods"),
        ("nn.apply(f, m)", "nn.apply"),
        ("nn.tabulate(m, k)", "nn.tabulate"),
        ("nn.attention", "module flax.linen.attention"),
        ("nn.linear.Brandnew(3)", "no rule knows"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason
