"""Normalisation layers: constructor calls before and after, and what is refused."""

from __future__ import annotations

import pytest

from tests.constructs.convert import refusal, text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.LayerNorm()", "nnx.LayerNorm(in_features, rngs=rngs)"),
        ("nn.LayerNorm(1e-5)", "nnx.LayerNorm(in_features, epsilon=1e-5, rngs=rngs)"),
        (
            "nn.LayerNorm(dtype=self.dtype)",
            "nnx.LayerNorm(in_features, dtype=self.dtype, promote_dtype=nnm.keep_dtype, rngs=rngs)",
        ),
        (
            "nn.LayerNorm(reduction_axes=(-2, -1), feature_axes=-1)",
            (
                "nnm.LayerNorm(reduction_axes=(-2, -1), feature_axes=-1, "
                "in_features=in_features, rngs=rngs)"
            ),
        ),
        (
            "nn.RMSNorm(force_float32_reductions=False)",
            "nnm.RMSNorm(force_float32_reductions=False, in_features=in_features, rngs=rngs)",
        ),
        (
            "nn.RMSNorm(force_float32_reductions=True)",
            "nnx.RMSNorm(in_features, rngs=rngs)",
        ),
        (
            "nn.GroupNorm(num_groups=None, group_size=8)",
            "nnx.GroupNorm(in_features, num_groups=None, group_size=8, rngs=rngs)",
        ),
        (
            "nn.GroupNorm(4, reduction_axes=(1, 2))",
            "nnm.GroupNorm(4, reduction_axes=(1, 2), in_features=in_features, rngs=rngs)",
        ),
        (
            "nn.BatchNorm(not train)",
            "nnm.BatchNorm(not train, in_features=in_features, rngs=rngs)",
        ),
        (
            "nn.BatchNorm()",
            "nnm.BatchNorm(in_features=in_features, rngs=rngs)",
        ),
        ("{'layer': nn.LayerNorm}", "{'layer': nnm.factory.LayerNorm}"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "sizes", "after"),
    [
        (
            "nn.LayerNorm(feature_axes=(1, -1), reduction_axes=(1, -1))",
            {"in_shape": "in_shape"},
            (
                "nnm.LayerNorm(feature_axes=(1, -1), reduction_axes=(1, -1), "
                "in_features=((in_shape)[1], (in_shape)[-1]), rngs=rngs)"
            ),
        ),
        (
            "nn.BatchNorm(axis=1)",
            {"in_shape": "in_shape"},
            "nnm.BatchNorm(axis=1, in_features=(in_shape)[1], rngs=rngs)",
        ),
    ],
)
def test_the_sizes_that_it_needs_are_passed(before: str, sizes: dict[str, str], after: str) -> None:
    assert text(before, sizes) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.LayerNorm(eps=1e-5)", "unknown argument 'eps'"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


@pytest.mark.parametrize(
    "before",
    ["nn.LayerNorm()", "nn.BatchNorm()", "nn.BatchNorm(axis=1)", "nn.LayerNorm(feature_axes=axes)"],
)
def test_an_unknown_size_is_refused(before: str) -> None:
    assert refusal(before, {}).reason.startswith("size unknown")
