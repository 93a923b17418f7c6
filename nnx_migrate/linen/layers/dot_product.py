"""Dot-product attention and its masks (flax 0.12.8, linen/attention.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from flax import nnx
from flax.nnx import make_attention_mask, make_causal_mask
from flax.typing import Array, Dtype, PrecisionLike, PRNGKey

from nnx_migrate.linen.module import Module
from nnx_migrate.numerics.attention import attention_einsum, dropped_weights, softmax_weights
from nnx_migrate.numerics.dtypes import promote_dtype

__all__ = [
    "combine_masks",
    "dot_product_attention",
    "dot_product_attention_weights",
    "make_attention_mask",
    "make_causal_mask",
]


def dot_product_attention_weights(
    query: Array,
    key: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    broadcast_dropout: bool = True,
    dropout_rng: PRNGKey | None = None,
    dropout_rate: float = 0.0,
    deterministic: bool = False,
    dtype: Dtype | None = None,
    precision: PrecisionLike = None,
    module: Module | None = None,
    force_fp32_for_softmax: bool = False,
    einsum_dot_general: Callable[..., Array] | None = None,
    einsum: Callable[..., Array] | None = None,
) -> Any:
    """Attention weights ``(*batch, heads, q_length, kv_length)``.

    Args:
      query, key: ``(*batch, length, heads, depth)``.
      bias, mask: broadcastable to the result; False in ``mask`` masks out.
      broadcast_dropout: one dropout mask for the whole batch and all heads.
      dtype: of the computation; None: the common dtype of ``query`` and ``key``.
      module: sows the weights, before dropout, as ``attention_weights`` of ``intermediates``.
      force_fp32_for_softmax: compute (and return) the softmax in float32.
      einsum: used in place of ``jnp.einsum``.

    Raises:
      ValueError: ``einsum`` comes with ``precision`` or ``einsum_dot_general``.
      AssertionError: the shapes do not fit.
    """
    if (precision or einsum_dot_general) and einsum:
        raise ValueError(
            "precision/einsum_dot_general and einsum are mutually exclusive, found both"
        )
    product = einsum or attention_einsum(precision, einsum_dot_general)
    query, key = promote_dtype(query, key, dtype=dtype)
    dtype = query.dtype
    assert query.ndim == key.ndim, "q, k must have same rank."
    assert query.shape[:-3] == key.shape[:-3], "q, k batch dims must match."
    assert query.shape[-2] == key.shape[-2], "q, k num_heads must match."
    assert query.shape[-1] == key.shape[-1], "q, k depths must match."
    weights = softmax_weights(query, key, bias, mask, product, force_fp32_for_softmax)
    if module:
        module.sow("intermediates", "attention_weights", weights)
    if not deterministic and dropout_rate > 0.0:
        weights = dropped_weights(
            weights, key.ndim, dropout_rng, dropout_rate, broadcast_dropout, dtype
        )
    return weights


def dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    broadcast_dropout: bool = True,
    dropout_rng: PRNGKey | None = None,
    dropout_rate: float = 0.0,
    deterministic: bool = False,
    dtype: Dtype | None = None,
    precision: PrecisionLike = None,
    module: Module | None = None,
    force_fp32_for_softmax: bool = False,
    einsum_dot_general: Callable[..., Array] | None = None,
    qk_attn_weights_einsum: Callable[..., Array] | None = None,
    attn_weights_value_einsum: Callable[..., Array] | None = None,
) -> Any:
    """Attention output ``(*batch, q_length, heads, v_depth)``; arguments as for the weights.

    Args:
      value: ``(*batch, kv_length, heads, v_depth)``.
      qk_attn_weights_einsum, attn_weights_value_einsum: used in place of ``jnp.einsum``; both or
        neither, and not together with ``precision`` or ``einsum_dot_general``.

    Raises:
      ValueError: arguments exclude each other.
      AssertionError: the shapes do not fit.
    """
    if bool(qk_attn_weights_einsum) != bool(attn_weights_value_einsum):
        raise ValueError(
            "qk_attn_weights_einsum and attn_weights_value_einsum must be specified together, "
            "found one"
        )
    if (precision or einsum_dot_general) and qk_attn_weights_einsum:
        raise ValueError(
            "precision/einsum_dot_general and qk_attn_weights_einsum/attn_weights_value_einsum are "
            "mutually exclusive, found both"
        )
    query, key, value = promote_dtype(query, key, value, dtype=dtype)
    assert key.ndim == query.ndim == value.ndim, "q, k, v must have same rank."
    assert query.shape[:-3] == key.shape[:-3] == value.shape[:-3], "q, k, v batch dims must match."
    assert query.shape[-2] == key.shape[-2] == value.shape[-2], "q, k, v num_heads must match."
    assert key.shape[-3] == value.shape[-3], "k, v lengths must match."
    weights = dot_product_attention_weights(
        query,
        key,
        bias,
        mask,
        broadcast_dropout,
        dropout_rng,
        dropout_rate,
        deterministic,
        query.dtype,
        precision,
        module,
        force_fp32_for_softmax,
        einsum_dot_general=einsum_dot_general,
        einsum=qk_attn_weights_einsum,
    )
    product = attn_weights_value_einsum or attention_einsum(precision, einsum_dot_general)
    return product("...hqk,...khd->...qhd", weights, value)


def combine_masks(*masks: Array | None, dtype: Dtype = jnp.float32) -> Array | None:
    """True where all masks are, in ``dtype``; a mask may be None, and all None give None.

    Raises:
      AssertionError: the masks differ in rank.
    """
    ranks = tuple(mask.ndim for mask in masks if mask is not None)
    assert len(set(ranks)) <= 1, f"masks must have same rank: {ranks}"
    return nnx.combine_masks(*masks, dtype=dtype)
