"""Axes of arrays, moved by transposes as Linen's loops move them (flax 0.12.8, core/axes_scan.py)."""

from __future__ import annotations

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
