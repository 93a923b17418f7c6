"""Pooling: the public names of ``flax.linen.pooling`` (flax 0.12.8)."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

__all__ = ["avg_pool", "jnp", "lax", "max_pool", "min_pool", "np", "pool"]

Padding = str | Sequence[tuple[int, int]]


def pool(
    inputs: Any,
    init: Any,
    reduce_fn: Callable[..., Any],
    window_shape: tuple[int, ...],
    strides: Sequence[int] | None,
    padding: Padding,
) -> Any:
    """Reduce each window of ``(*batch, *spatial, channels)`` with ``reduce_fn``, starting from ``init``.

    Args:
      inputs: any number of batch axes, also none.
      reduce_fn: associative and commutative, such as ``lax.max``.
      window_shape: one size per spatial axis.
      strides: one per spatial axis; None: 1 everywhere.
      padding: SAME, VALID, or one pair per spatial axis.

    Raises:
      AssertionError: the numbers of axes do not agree.
    """
    rank = len(window_shape)
    batch_axes = inputs.ndim - (rank + 1)
    strides = strides or (1,) * rank
    assert rank == len(strides), f"len({window_shape}) must equal len({strides})"
    is_single = batch_axes == 0
    if is_single:
        inputs, batch_axes = inputs[None], 1
    steps = (1,) * batch_axes + tuple(strides) + (1,)
    dims = (1,) * batch_axes + tuple(window_shape) + (1,)
    assert inputs.ndim == len(dims), f"len({inputs.shape}) != len({dims})"
    if not isinstance(padding, str):
        pairs: Any = tuple(map(tuple, padding))
        assert len(pairs) == rank, f"padding {pairs} must have one entry for each of {window_shape}"
        assert all(len(pair) == 2 for pair in pairs), f"entries of padding {pairs} must be pairs"
        padding = ((0, 0), *pairs, (0, 0))
    y = lax.reduce_window(inputs, init, reduce_fn, dims, steps, padding)
    return jnp.squeeze(y, axis=0) if is_single else y


def avg_pool(
    inputs: Any,
    window_shape: tuple[int, ...],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window; arguments as for :func:`pool`.

    Args:
      count_include_pad: False divides by the number of values that are no padding.
    """
    total = pool(inputs, 0.0, lax.add, window_shape, strides, padding)
    if count_include_pad:
        return total / np.prod(window_shape)
    shape = (*inputs.shape[:-1], 1)
    if len(shape) - 2 == len(window_shape):
        shape = (1, *shape[1:])
    return total / pool(jnp.ones(shape), 0.0, lax.add, window_shape, strides, padding)


def max_pool(
    inputs: Any,
    window_shape: tuple[int, ...],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
) -> Any:
    """The maximum of each window; arguments as for :func:`pool`."""
    return pool(inputs, -jnp.inf, lax.max, window_shape, strides, padding)


def min_pool(
    inputs: Any,
    window_shape: tuple[int, ...],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
) -> Any:
    """The minimum of each window; arguments as for :func:`pool`."""
    return pool(inputs, jnp.inf, lax.min, window_shape, strides, padding)
