"""Axes of arrays: as layers ask for them (flax 0.12.8, linen/linear.py), and moved (core/axes_scan.py)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp


def to_front(x: jax.Array, axis: int) -> jax.Array:
    """``x`` with ``axis``, counted from the front, as its first one."""
    if axis == 0:
        return x
    return jnp.transpose(x, (axis, *(i for i in range(x.ndim) if i != axis)))


def from_front(x: jax.Array, axis: int) -> jax.Array:
    """``x`` with its first axis at ``axis``, counted from the front."""
    if axis == 0:
        return x
    return jnp.transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def as_tuple(value: int | Sequence[int]) -> tuple[int, ...]:
    """A tuple of the numbers, or of the one number."""
    return (value,) if not hasattr(value, "__iter__") else tuple(value)


def sorted_axes(axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """``axes`` counted from the front, in ascending order."""
    return tuple(sorted(axis if axis >= 0 else ndim + axis for axis in axes))
