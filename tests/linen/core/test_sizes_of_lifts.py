"""The size of a lifted class is that of what its body sees: its inputs without the lifted axis."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from nnx_migrate import linen as nn
from nnx_migrate import nn as nnm

KEY = jax.random.key(0)


class LinenCell(linen.Module):
    @linen.compact
    def __call__(self, carry: jax.Array, x: jax.Array) -> Any:
        carry = carry + linen.Dense(4)(x)
        return carry, carry * 2


class Cell(nnx.Module):
    def __init__(self, *, x_features: int, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(x_features, 4, rngs=rngs)

    def __call__(self, carry: jax.Array, x: jax.Array) -> Any:
        carry = carry + self.Dense_0(x)
        return carry, carry * 2


def scanned(lib: Any, kind: Any, axis: int) -> Any:
    options: Any = {"variable_broadcast": "params", "split_rngs": {"params": False}}
    return lib.scan(kind, in_axes=axis, out_axes=axis, **options)


def scanned_lanes(lib: Any, kind: Any, axis: int) -> Any:
    """Steps along the first axis; ``axis`` of a step is that of the lanes."""
    options: Any = {"variable_axes": {"params": None}, "split_rngs": {"params": False}}
    return scanned(lib, lib.vmap(kind, in_axes=(0, axis), out_axes=0, **options), 0)


@pytest.mark.parametrize(
    ("lift", "axis", "carry"),
    [
        (scanned, 2, (3, 4)),
        (scanned, 0, (5, 4)),
        (scanned, -2, (3, 4)),
        (scanned_lanes, 1, (6, 4)),
    ],
)
def test_it_is_measured_without_the_lifted_axis(
    lift: Any, axis: int, carry: tuple[int, ...]
) -> None:
    class LinenNet(linen.Module):
        @linen.compact
        def __call__(self, carry: jax.Array, x: jax.Array) -> Any:
            return lift(linen, LinenCell, axis)(name="step")(carry, x)

    class Net(nnx.Module):
        def __init__(self, *, step_x_features: int, rngs: nnx.Rngs) -> None:
            self.step = lift(nnm, Cell, axis)(x_features=step_x_features, rngs=rngs)

        def __call__(self, carry: jax.Array, x: jax.Array) -> Any:
            return self.step(carry, x)

    args = jnp.zeros(carry), jax.random.normal(KEY, (3, 5, 6))
    expected = LinenNet().init_with_output(KEY, *args)
    jax.tree.map(
        np.testing.assert_array_equal, nn.lazy(Net)().init_with_output(KEY, *args), expected
    )
