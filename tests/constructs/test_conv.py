"""Convolutions: constructor calls before and after, and what is refused."""

from __future__ import annotations

import pytest

from tests.constructs.convert import refusal, text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "nn.Conv(32, (3, 3), (2, 2), 'VALID')",
            "nnx.Conv(in_features, 32, (3, 3), (2, 2), padding='VALID', rngs=rngs)",
        ),
        (
            "nn.Conv(kernel_size=(3,), features=4, strides=2)",
            "nnx.Conv(in_features, 4, kernel_size=(3,), strides=2, rngs=rngs)",
        ),
        (
            "nn.Conv(4, (3,), conv_general_dilated=g)",
            "nnm.factory.Conv(4, (3,), conv_general_dilated=g, in_features=in_features, rngs=rngs)",
        ),
        (
            "nn.ConvTranspose(4, (3,), transpose_kernel=True)",
            "nnx.ConvTranspose(in_features, 4, (3,), transpose_kernel=True, rngs=rngs)",
        ),
        (
            "functools.partial(nn.Conv, use_bias=False)",
            "functools.partial(nnm.factory.Conv, use_bias=False)",
        ),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "sizes", "after"),
    [
        (
            "nn.ConvLocal(8, (3,))",
            {"in_shape": "in_shape"},
            "nnm.ConvLocal(8, (3,), input_shape=in_shape, rngs=rngs)",
        ),
    ],
)
def test_the_sizes_that_it_needs_are_passed(before: str, sizes: dict[str, str], after: str) -> None:
    assert text(before, sizes) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.Conv(8)", "without 'kernel_size'"),
        ("nn.Conv(8, (3,), conv_general_dilated_cls=c)", "conv_general_dilated_cls"),
        ("nn.Conv(8, (3,), stride=2)", "unknown argument 'stride'"),
        ("nn.ConvTranspose(kernel_size=3)", "without 'features'"),
        ("nn.ConvLocal(8, (3,))", "in_shape"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


@pytest.mark.parametrize("before", ["nn.Conv(8, 3)", "nn.ConvTranspose(8, 3)"])
def test_an_unknown_size_is_refused(before: str) -> None:
    assert refusal(before, {}).reason.startswith("size unknown")
