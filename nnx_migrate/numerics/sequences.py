"""Padded sequences, and one product for several gates (flax 0.12.8, linen/recurrent.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nnx_migrate.numerics.dtypes import promote_dtype


def flip_sequences(
    inputs: jax.Array, seq_lengths: jax.Array | None, num_batch_dims: int, time_major: bool
) -> jax.Array:
    """Reverse ``inputs`` in time, padding staying at the end.

    Args:
      inputs: ``(*batch, time, *features)``, or ``(time, *batch, *features)`` if ``time_major``.
      seq_lengths: integers of shape ``(*batch,)``, or None when nothing is padded.
    """
    time_axis = 0 if time_major else num_batch_dims
    if seq_lengths is None:
        return jnp.flip(inputs, axis=time_axis)
    steps = inputs.shape[time_axis]
    lengths = jnp.expand_dims(seq_lengths, axis=time_axis)
    index = jnp.arange(steps - 1, -1, -1)
    ones = [1] * num_batch_dims
    index = jnp.reshape(index, [steps, *ones] if time_major else [*ones, steps])
    index = (index + lengths) % steps
    index = index.reshape(list(index.shape) + [1] * (inputs.ndim - index.ndim))
    return jnp.take_along_axis(inputs, index, axis=time_axis)


def last_carry(carries: Any, seq_lengths: Any) -> Any:
    """The carry at each example's last valid step; leaves are ``(time, batch, ...)``."""
    last = seq_lengths - 1
    return jax.tree.map(lambda x: x[last, jnp.arange(x.shape[1])], carries)


def concatenate_features(a: jax.Array, b: jax.Array) -> jax.Array:
    """Join two arrays along the last axis."""
    return jnp.concatenate([a, b], axis=-1)


def joint_product(
    inputs: jax.Array, kernels: Sequence[Any], biases: Sequence[Any] | None, dtype: Any
) -> list[jax.Array]:
    """``inputs @ kernel + bias`` for each kernel, computed as one product.

    Args:
      inputs: ``(*batch, in_features)``.
      kernels: each ``(in_features, features)``.
      biases: each ``(features,)``; None for none at all.
      dtype: of the computation; None: the common one.
    """
    kernel = jnp.concatenate(kernels, axis=-1)
    bias = None if biases is None else jnp.concatenate(biases, axis=-1)
    inputs, kernel, bias = promote_dtype(inputs, kernel, bias, dtype=dtype)
    y = jnp.dot(inputs, kernel)
    if bias is not None:
        y += jnp.reshape(bias, (1,) * (y.ndim - 1) + (-1,))
    return jnp.split(y, np.cumsum([one.shape[-1] for one in kernels[:-1]]), axis=-1)
