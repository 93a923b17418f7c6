"""Dot-product attention with Linen's maths (flax 0.12.8, linen/attention.py; same in 0.12.12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from flax import nnx

from nnx_migrate.nn.layers.dtypes import promote_dtype
from nnx_migrate.nn.variables.state import sow
from nnx_migrate.numerics.attention import attention_einsum, dropped_weights, softmax_weights


def _expect(condition: bool, message: str, *arrays: jax.Array) -> None:
    if not condition:
        raise ValueError(f"{message}, found shapes {[array.shape for array in arrays]}")


def dot_product_attention_weights(
    query: jax.Array,
    key: jax.Array,
    bias: jax.Array | None = None,
    mask: jax.Array | None = None,
    broadcast_dropout: bool = True,
    dropout_rng: Any = None,
    dropout_rate: float = 0.0,
    deterministic: bool = False,
    dtype: Any = None,
    precision: Any = None,
    module: nnx.Module | None = None,
    force_fp32_for_softmax: bool = False,
    einsum_dot_general: Callable[..., jax.Array] | None = None,
    einsum: Callable[..., jax.Array] | None = None,
) -> jax.Array:
    """Attention weights ``(*batch, heads, q_length, kv_length)``.

    Args:
      query, key: ``(*batch, length, heads, depth)``.
      bias, mask: broadcastable to the result; False in ``mask`` masks out.
      dtype: of the computation; default: the common dtype of ``query`` and ``key``.
      module: sows the weights as ``attention_weights``, where a call captures or keeps intermediates.
      force_fp32_for_softmax: compute (and return) the softmax in float32.

    Raises:
      ValueError: shapes do not fit, or ``einsum`` comes with ``precision``/``einsum_dot_general``.
    """
    if (precision or einsum_dot_general) and einsum:
        raise ValueError("expected either einsum or precision/einsum_dot_general, found both")
    einsum = einsum or attention_einsum(precision, einsum_dot_general)
    query, key = promote_dtype(query, key, dtype=dtype)
    dtype = query.dtype
    _expect(
        query.ndim == key.ndim
        and query.shape[:-3] == key.shape[:-3]
        and query.shape[-2:] == key.shape[-2:],
        "query and key must agree in batch, heads and depth",
        query,
        key,
    )
    weights = softmax_weights(query, key, bias, mask, einsum, force_fp32_for_softmax)
    if module is not None:
        sow(module, "intermediates", "attention_weights", weights)
    if not deterministic and dropout_rate > 0.0:
        weights = dropped_weights(
            weights, key.ndim, dropout_rng, dropout_rate, broadcast_dropout, dtype
        )
    return weights


def dot_product_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: jax.Array | None = None,
    mask: jax.Array | None = None,
    broadcast_dropout: bool = True,
    dropout_rng: Any = None,
    dropout_rate: float = 0.0,
    deterministic: bool = False,
    dtype: Any = None,
    precision: Any = None,
    module: nnx.Module | None = None,
    force_fp32_for_softmax: bool = False,
    einsum_dot_general: Callable[..., jax.Array] | None = None,
    qk_attn_weights_einsum: Callable[..., jax.Array] | None = None,
    attn_weights_value_einsum: Callable[..., jax.Array] | None = None,
) -> jax.Array:
    """Attention output ``(*batch, q_length, heads, v_depth)``; arguments as for the weights.

    Args:
      value: ``(*batch, kv_length, heads, v_depth)``.
      qk_attn_weights_einsum, attn_weights_value_einsum: replace ``jnp.einsum``; both or neither,
        and not together with ``precision``/``einsum_dot_general``.

    Raises:
      ValueError: shapes do not fit, or arguments exclude each other.
    """
    if (qk_attn_weights_einsum is None) != (attn_weights_value_einsum is None):
        raise ValueError(
            "expected qk_attn_weights_einsum and attn_weights_value_einsum together, found one"
        )
    if (precision or einsum_dot_general) and qk_attn_weights_einsum:
        raise ValueError(
            "expected either qk_attn_weights_einsum/attn_weights_value_einsum or "
            "precision/einsum_dot_general, found both"
        )
    query, key, value = promote_dtype(query, key, value, dtype=dtype)
    dtype = query.dtype
    _expect(
        key.ndim == query.ndim == value.ndim
        and query.shape[:-3] == key.shape[:-3] == value.shape[:-3]
        and query.shape[-2] == key.shape[-2] == value.shape[-2]
        and key.shape[-3] == value.shape[-3],
        "query, key and value must agree in batch and heads, key and value in length",
        query,
        key,
        value,
    )
    weights = dot_product_attention_weights(
        query,
        key,
        bias,
        mask,
        broadcast_dropout,
        dropout_rng,
        dropout_rate,
        deterministic,
        dtype,
        precision,
        module,
        force_fp32_for_softmax,
        einsum_dot_general=einsum_dot_general,
        einsum=qk_attn_weights_einsum,
    )
    einsum = attn_weights_value_einsum or attention_einsum(precision, einsum_dot_general)
    return einsum("...hqk,...khd->...qhd", weights, value)
