"""The parts of dot-product attention (flax 0.12.8, linen/attention.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, random

_finfo: Any = jnp.finfo


def attention_einsum(precision: Any, dot_general: Any) -> Callable[..., jax.Array]:
    """``jnp.einsum`` with a precision and, if not None, another ``dot_general``."""
    return functools.partial(
        jnp.einsum, precision=precision, _dot_general=dot_general or lax.dot_general
    )


def softmax_weights(
    query: jax.Array,
    key: jax.Array,
    bias: Any,
    mask: Any,
    einsum: Callable[..., jax.Array],
    force_fp32_for_softmax: bool,
) -> jax.Array:
    """Weights ``(*batch, heads, q_length, kv_length)`` before dropout, in the dtype of ``query``.

    Args:
      query, key: ``(*batch, length, heads, depth)`` of one dtype.
      bias, mask: broadcastable to the result, or None; False in ``mask`` masks out.
      force_fp32_for_softmax: compute (and return) the softmax in float32.
    """
    dtype = query.dtype
    query = query / jnp.sqrt(query.shape[-1]).astype(dtype)
    weights = einsum("...qhd,...khd->...hqk", query, key)
    if bias is not None:
        weights = weights + bias
    if mask is not None:
        weights = jnp.where(mask, weights, _finfo(dtype).min)
    if force_fp32_for_softmax and dtype != jnp.float32:
        return jax.nn.softmax(weights.astype(jnp.float32))
    return jax.nn.softmax(weights).astype(dtype)


def dropped_weights(
    weights: jax.Array, rank: int, rng: Any, rate: float, broadcast: bool, dtype: Any
) -> jax.Array:
    """Weights with a fraction ``rate`` set to 0 and the rest scaled.

    Args:
      rank: number of axes of the keys.
      broadcast: one mask for the whole batch and all heads.
      dtype: of the mask that is multiplied with.
    """
    keep = 1.0 - rate
    shape = (1,) * (rank - 2) + weights.shape[-2:] if broadcast else weights.shape
    keep_mask = random.bernoulli(rng, keep, shape)
    return weights * (keep_mask.astype(dtype) / jnp.asarray(keep, dtype=dtype))


def append_position(
    cached_key: jax.Array, cached_value: jax.Array, index: jax.Array, key: Any, value: Any
) -> tuple[jax.Array, jax.Array]:
    """The caches of keys and values with the position ``index`` set.

    Args:
      cached_key, cached_value: ``(*batch, max_length, heads, depth)``.
      index: an integer scalar.
      key, value: ``(*batch, 1, heads, depth)``.
    """
    zero = jnp.array(0, dtype=lax.dtype(index.dtype))
    start = (zero,) * (cached_key.ndim - 3) + (index, zero, zero)
    keys = lax.dynamic_update_slice(cached_key, key, start)
    return keys, lax.dynamic_update_slice(cached_value, value, start)


def filled_positions(index: jax.Array, cache_shape: Sequence[int]) -> jax.Array:
    """Bool ``(*batch, 1, 1, max_length)``: True up to and including position ``index``."""
    *batch, max_length, _, _ = cache_shape
    return jnp.broadcast_to(jnp.arange(max_length) <= index, (*batch, 1, 1, max_length))
