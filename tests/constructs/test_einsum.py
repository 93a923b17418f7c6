"""Einsum: constructor calls before and after, and what is refused."""

from __future__ import annotations

import pytest

from tests.constructs.convert import refusal, text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "nn.Einsum((3, 4), 'ab,bc->ac')",
            "nnm.Einsum((3, 4), 'ab,bc->ac', rngs=rngs)",
        ),
        (
            "nn.Einsum((3, 4), 'ab,bc->ac', use_bias=False, precision=p)",
            "nnx.Einsum('ab,bc->ac', (3, 4), precision=p, rngs=rngs)",
        ),
        ("nn.Einsum((3, 4), use_bias=False)", "nnm.Einsum((3, 4), use_bias=False, rngs=rngs)"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.Einsum()", "without 'shape'"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason
