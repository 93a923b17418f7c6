"""DenseGeneral: constructor calls before and after, and what is refused."""

from __future__ import annotations

import pytest

from tests.constructs.convert import refusal, text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "nn.DenseGeneral(features=(4, 8), axis=-1, name='q')",
            "nnx.LinearGeneral(in_features, (4, 8), axis=-1, rngs=rngs)",
        ),
        (
            "nn.DenseGeneral(4, batch_dims=())",
            "nnx.LinearGeneral(in_features, 4, rngs=rngs)",
        ),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "sizes", "after"),
    [
        (
            "nn.DenseGeneral(4, batch_dims=(0, 1))",
            {"in_features": "in_features", "batch_shape": "(b, 3)"},
            "nnx.LinearGeneral(in_features, 4, batch_axis={0: b, 1: 3}, rngs=rngs)",
        ),
        (
            "nn.DenseGeneral(4, batch_dims=dims)",
            {"in_features": "in_features", "batch_shape": "(b, 3)"},
            (
                "nnm.factory.DenseGeneral(4, batch_dims=dims, in_features=in_features, "
                "batch_sizes=(b, 3), rngs=rngs)"
            ),
        ),
    ],
)
def test_the_sizes_that_it_needs_are_passed(before: str, sizes: dict[str, str], after: str) -> None:
    assert text(before, sizes) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.DenseGeneral(8, dot_general_cls=c)", "dot_general_cls"),
        ("nn.DenseGeneral(8, batch_dims=(0,))", "batch_shape"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


@pytest.mark.parametrize("before", ["nn.DenseGeneral(8)"])
def test_an_unknown_size_is_refused(before: str) -> None:
    assert refusal(before, {}).reason.startswith("size unknown")
