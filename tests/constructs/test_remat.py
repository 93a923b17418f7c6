"""``nn.remat``: which calls are rewritten, which are refused and why."""

from __future__ import annotations

import pytest

from tests.constructs.convert import refusal, text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.remat(Block)", "nnm.remat(Block)"),
        (
            "nn.checkpoint(Block, prevent_cse=False, static_argnums=(2, 3))",
            "nnm.remat(Block, prevent_cse=False, static_argnums=(2, 3))",
        ),
        (
            "partitioning.remat(Block, static_argnums=(1,), policy=p)",
            "nnm.remat(Block, static_argnums=(1,), policy=p, counts_self=False)",
        ),
        ("nn.remat(Block, True, True)", "nnm.remat(Block)"),
        ("nn.remat(lambda m, x: m(x))", "nnm.remat(lambda m, x: m(x))"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.remat", "used as a value"),
        ("functools.partial(nn.remat, prevent_cse=False)", "used as a value"),
        ("nn.remat(Block, rngs=False)", "remat with rngs="),
        ("nn.remat(Block, variables='params')", "remat with variables="),
        ("nn.remat(**options)", "does not show"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason
