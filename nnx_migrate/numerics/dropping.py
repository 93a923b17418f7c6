"""Dropout of activations (flax 0.12.8, linen/stochastic.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, random


def dropout(
    inputs: jax.Array, rate: float, broadcast_dims: Sequence[int], key: Callable[[], Any]
) -> jax.Array:
    """``inputs`` with a fraction ``rate`` set to 0 and the rest scaled.

    Args:
      broadcast_dims: axes that share one mask.
      key: gives the key; asked only where one is needed.
    """
    if rate == 0.0:
        return inputs
    if rate == 1.0:
        return jnp.zeros_like(inputs)  # 0 / 0 below would give NaN gradients
    keep = 1.0 - rate
    dropout_key = key()
    shape = list(inputs.shape)
    for axis in broadcast_dims:
        shape[axis] = 1
    mask = random.bernoulli(dropout_key, p=keep, shape=shape)
    mask = jnp.broadcast_to(mask, inputs.shape)
    return lax.select(mask, inputs / keep, jnp.zeros_like(inputs))
