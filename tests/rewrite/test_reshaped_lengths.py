"""Lengths that nobody knows in reshapes: an axis keeps its length where it is read of that axis, not of half of it."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike

NET = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    r: int = 2

    @nn.compact
    def __call__(self, x):
        {}
        return nn.Dense(3)(x) * self.param("s", nn.initializers.normal(), (x.shape[-1], 1)).sum()
"""
BODIES = {
    "half of an unknown length": (
        "x = x.reshape(x.shape[0], -1, 1)",
        "x = x.reshape(x.shape[0], x.shape[1] // 2, -1)",
    ),
    "half by a field": (
        "b, h, w, c = x.shape",
        "x = x.reshape(b, -1, c)",
        "x = x.reshape(b, x.shape[1] // self.r, -1)",
    ),
    "twice": (
        "x = x.reshape(x.shape[0], -1, x.shape[-1] // 2)",
        "x = x.reshape(x.shape[0], x.shape[1] * 2, -1)",
    ),
    "the same": (
        "x = x.reshape(x.shape[0], -1, x.shape[-1])",
        "x = x.reshape(x.shape[0], x.shape[1], 2, -1)",
        "x = x.reshape(x.shape[0], x.shape[1], -1)",
    ),
    "in two axes": (
        "x = x.reshape(x.shape[0], -1, x.shape[-1])",
        "x = x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[-1])",
        "x = x.reshape(x.shape[0], x.shape[1], -1)",
    ),
    "another axis": (
        "x = nn.avg_pool(x, (2, 1), strides=(2, 1))",
        "x = x.reshape(x.shape[0], x.shape[2], -1)",
    ),
}


@pytest.mark.parametrize("lines", BODIES.values(), ids=BODIES)
def test_the_last_axis_has_what_is_left(lines: tuple[str, ...]) -> None:
    assert net_alike(NET.format("\n        ".join(lines)), "jnp.ones((2, 4, 6, 8))")
