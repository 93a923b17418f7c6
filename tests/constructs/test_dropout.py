"""Dropout: constructor calls before and after, and what is refused."""

from __future__ import annotations

import pytest

from tests.constructs.convert import refusal, text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.Dropout(0.1)", "nnm.Dropout(0.1, rngs=rngs)"),
        (
            "nn.Dropout(rate=r, broadcast_dims=(1,))",
            "nnm.Dropout(rate=r, broadcast_dims=(1,), rngs=rngs)",
        ),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.Dropout()", "without 'rate'"),
        ("nn.Dropout(0.1, rng='x')", "unknown argument 'rng'"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason
