"""Multi-head attention with Linen's maths, names and cache (flax 0.12.8, linen/attention.py).

Without dropout the native layer calls ``jax.nn.dot_product_attention``, which computes logits in
float32 and ignores ``precision``; Linen computes in the layer's dtype.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from flax.nnx import combine_masks, make_attention_mask, make_causal_mask
from flax.nnx.nn.linear import default_kernel_init
from jax import lax, random

from .dtypes import canonicalize_dtype, linen_dot_general, promote_dtype
from .normalization import LayerNorm
from .variables import merge_param, stream

__all__ = [
    "MultiHeadAttention",
    "MultiHeadDotProductAttention",
    "SelfAttention",
    "combine_masks",
    "dot_product_attention",
    "dot_product_attention_weights",
    "make_attention_mask",
    "make_causal_mask",
]


def _einsum(precision: Any, dot_general: Any) -> Callable[..., jax.Array]:
    return functools.partial(
        jnp.einsum, precision=precision, _dot_general=dot_general or lax.dot_general
    )


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
      module: sows the weights as ``nnx.Intermediate`` named ``attention_weights``.
      force_fp32_for_softmax: compute (and return) the softmax in float32.

    Raises:
      ValueError: shapes do not fit, or ``einsum`` comes with ``precision``/``einsum_dot_general``.
    """
    if (precision or einsum_dot_general) and einsum:
        raise ValueError("expected either einsum or precision/einsum_dot_general, found both")
    einsum = einsum or _einsum(precision, einsum_dot_general)
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
    query = query / jnp.sqrt(query.shape[-1]).astype(dtype)
    weights = einsum("...qhd,...khd->...hqk", query, key)
    if bias is not None:
        weights = weights + bias
    if mask is not None:
        weights = jnp.where(mask, weights, jnp.finfo(dtype).min)
    if force_fp32_for_softmax and dtype != jnp.float32:
        weights = jax.nn.softmax(weights.astype(jnp.float32))
    else:
        weights = jax.nn.softmax(weights).astype(dtype)
    if module is not None:
        module.sow(nnx.Intermediate, "attention_weights", weights)
    if not deterministic and dropout_rate > 0.0:
        keep = 1.0 - dropout_rate
        # A broadcast mask is shared by the batch and the heads.
        shape = (1,) * (key.ndim - 2) + weights.shape[-2:] if broadcast_dropout else weights.shape
        kept = random.bernoulli(dropout_rng, keep, shape)
        weights = weights * (kept.astype(dtype) / jnp.asarray(keep, dtype=dtype))
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
    einsum = attn_weights_value_einsum or _einsum(precision, einsum_dot_general)
    return einsum("...hqk,...khd->...qhd", weights, value)


class MultiHeadDotProductAttention(nnx.Module):
    """``linen.MultiHeadDotProductAttention``: submodules ``query key value out [query_ln key_ln]``.

    Args:
      in_features: size of the query input's last axis (``qkv_features`` and ``out_features``
        default to it).
      in_kv_features: of the key and value inputs; default ``in_features``.
      in_v_features: of the value input; default ``in_kv_features``.
      cache_shape: with ``decode``, the shape of the inputs that Linen's ``init`` would see; gives
        the cache at once (see :meth:`init_cache`).

    Raises:
      ValueError: the heads do not divide ``qkv_features``.
      TypeError: a ``*_cls`` field is given (quantisation hooks have no NNX counterpart).
    """

    def __init__(
        self,
        num_heads: int,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        qkv_features: int | None = None,
        out_features: int | None = None,
        broadcast_dropout: bool = True,
        dropout_rate: float = 0.0,
        deterministic: bool | None = None,
        precision: Any = None,
        kernel_init: Any = default_kernel_init,
        out_kernel_init: Any = None,
        bias_init: Any = nnx.initializers.zeros_init(),
        out_bias_init: Any = None,
        use_bias: bool = True,
        attention_fn: Callable[..., jax.Array] = dot_product_attention,
        decode: bool = False,
        normalize_qk: bool = False,
        force_fp32_for_softmax: bool = False,
        qkv_dot_general: Any = None,
        out_dot_general: Any = None,
        qkv_dot_general_cls: Any = None,
        out_dot_general_cls: Any = None,
        qk_attn_weights_einsum_cls: Any = None,
        attn_weights_value_einsum_cls: Any = None,
        *,
        in_features: int,
        in_kv_features: int | None = None,
        in_v_features: int | None = None,
        cache_shape: Sequence[int] | None = None,
        rngs: nnx.Rngs,
    ) -> None:
        _refuse(
            qkv_dot_general_cls=qkv_dot_general_cls,
            out_dot_general_cls=out_dot_general_cls,
            qk_attn_weights_einsum_cls=qk_attn_weights_einsum_cls,
            attn_weights_value_einsum_cls=attn_weights_value_einsum_cls,
        )
        qkv_features = qkv_features or in_features
        if qkv_features % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide qkv_features={qkv_features}")
        self.num_heads = num_heads
        self.head_dim = qkv_features // num_heads
        self.out_features = out_features or in_features
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.broadcast_dropout = broadcast_dropout
        self.dropout_rate = dropout_rate
        self.deterministic = deterministic
        self.precision = precision
        self.attention_fn = attention_fn
        self.decode = decode
        self.normalize_qk = normalize_qk
        self.force_fp32_for_softmax = force_fp32_for_softmax

        common = {"use_bias": use_bias, "dtype": dtype, "param_dtype": param_dtype}
        common |= {"precision": precision, "rngs": rngs}
        heads = (num_heads, self.head_dim)
        kv_size = in_kv_features or in_features
        sizes = {"query": in_features, "key": kv_size, "value": in_v_features or kv_size}
        for name, size in sizes.items():
            projection = nnx.LinearGeneral(
                size,
                heads,
                kernel_init=kernel_init,
                bias_init=bias_init,
                dot_general=_adapted(qkv_dot_general),
                **common,
            )
            setattr(self, name, projection)
        self.out = nnx.LinearGeneral(
            heads,
            self.out_features,
            axis=(-2, -1),
            kernel_init=out_kernel_init or kernel_init,
            bias_init=out_bias_init or bias_init,
            dot_general=_adapted(out_dot_general),
            **common,
        )
        if normalize_qk:
            for name in ("query_ln", "key_ln"):
                norm = LayerNorm(
                    dtype=dtype,
                    param_dtype=param_dtype,
                    use_bias=False,
                    in_features=self.head_dim,
                    rngs=rngs,
                )
                setattr(self, name, norm)
        self.dropout_stream = nnx.data(stream(rngs, "dropout") if dropout_rate > 0.0 else None)
        self.cached_key = nnx.data(None)
        self.cached_value = nnx.data(None)
        self.cache_index = nnx.data(None)
        if decode and cache_shape is not None:
            self.init_cache(cache_shape)

    def init_cache(self, input_shape: Sequence[int], dtype: Any = jnp.float32) -> None:
        """Empty the cache for key inputs of ``(*batch, max_length, features)`` and ``dtype``."""
        if self.dtype is not None:
            dtype = self.dtype
        else:
            dtype = canonicalize_dtype(jnp.zeros((), dtype), jnp.zeros((), self.param_dtype))
        shape = (*input_shape[:-1], self.num_heads, self.head_dim)
        self.cached_key = nnx.Cache(jnp.zeros(shape, dtype))
        self.cached_value = nnx.Cache(jnp.zeros(shape, dtype))
        self.cache_index = nnx.Cache(jnp.array(0, dtype=jnp.int32))

    def __call__(
        self,
        inputs_q: jax.Array,
        inputs_k: jax.Array | None = None,
        inputs_v: jax.Array | None = None,
        *,
        inputs_kv: jax.Array | None = None,
        mask: jax.Array | None = None,
        deterministic: bool | None = None,
        dropout_rng: Any = None,
        sow_weights: bool = False,
    ) -> jax.Array:
        """Attend from ``inputs_q`` to ``inputs_k``/``inputs_v``: ``(*batch, length, features)``.

        Keys default to the queries and values to the keys; ``inputs_kv`` sets both.

        Raises:
          ValueError: inputs exclude each other, ``deterministic`` is missing or given twice, or
            ``decode`` without a cache or with an input of the wrong shape.
        """
        inputs_k, inputs_v = _key_value_inputs(inputs_q, inputs_k, inputs_v, inputs_kv)
        query, key, value = self.query(inputs_q), self.key(inputs_k), self.value(inputs_v)
        if self.normalize_qk:
            query, key = self.query_ln(query), self.key_ln(key)
        if self.decode:
            key, value, mask = self._cached(query, key, value, mask)
        passing = True
        if self.dropout_rate > 0.0:
            passing = merge_param("deterministic", self.deterministic, deterministic)
            if not passing and dropout_rng is None:
                dropout_rng = self.dropout_stream()
        options = {
            "mask": mask,
            "dropout_rng": dropout_rng,
            "dropout_rate": self.dropout_rate,
            "broadcast_dropout": self.broadcast_dropout,
            "deterministic": passing,
            "dtype": self.dtype,
            "precision": self.precision,
            "force_fp32_for_softmax": self.force_fp32_for_softmax,
            "qk_attn_weights_einsum": None,
            "attn_weights_value_einsum": None,
        }
        # A user's attention_fn need not know every option.
        known = inspect.signature(self.attention_fn).parameters
        options = {name: option for name, option in options.items() if name in known}
        if sow_weights:
            options["module"] = self
        return self.out(self.attention_fn(query, key, value, **options))

    def _cached(self, query: Any, key: Any, value: Any, mask: Any) -> tuple[Any, Any, Any]:
        """Append one position to the cache; the whole cache and the mask of what is filled."""
        if self.cached_key is None:
            raise ValueError("decode=True needs a cache: call init_cache(input_shape) first")
        *batch, max_length, heads, depth = self.cached_key.shape
        expected = (*batch, 1, heads, depth)
        if query.shape != expected:
            raise ValueError(f"expected a query of shape {expected}, found {query.shape}")
        index = self.cache_index[...]
        zero = jnp.array(0, dtype=index.dtype)
        start = (zero,) * len(batch) + (index, zero, zero)
        key = lax.dynamic_update_slice(self.cached_key[...], key, start)
        value = lax.dynamic_update_slice(self.cached_value[...], value, start)
        self.cached_key.set_value(key)
        self.cached_value.set_value(value)
        self.cache_index.set_value(self.cache_index[...] + 1)
        filled = jnp.broadcast_to(jnp.arange(max_length) <= index, (*batch, 1, 1, max_length))
        return key, value, combine_masks(mask, filled)

    def set_view(self, deterministic: bool | None = None, decode: bool | None = None) -> None:
        """Used by ``nnx.view``; ``train()`` and ``eval()`` set ``deterministic`` too."""
        if deterministic is not None:
            self.deterministic = deterministic
        if decode is not None:
            self.decode = decode


def _refuse(**fields: Any) -> None:
    given = [name for name, value in fields.items() if value is not None]
    if given:
        raise TypeError(f"not supported in NNX: {', '.join(given)} (quantisation hooks of Linen)")


def _adapted(dot_general: Any) -> Any:
    return None if dot_general is None else linen_dot_general(dot_general)


def _key_value_inputs(q: Any, k: Any, v: Any, kv: Any) -> tuple[Any, Any]:
    if kv is not None:
        if k is not None or v is not None:
            raise ValueError("expected either inputs_kv or inputs_k/inputs_v, found both")
        return kv, kv
    if k is None:
        if v is not None:
            raise ValueError("expected inputs_k with inputs_v, found inputs_v only")
        k = q
    return k, (k if v is None else v)


class MultiHeadAttention(MultiHeadDotProductAttention):
    """``linen.MultiHeadAttention``: the same layer under its other automatic name."""


class SelfAttention(MultiHeadDotProductAttention):
    """``linen.SelfAttention``: attention of the inputs to themselves."""

    def __call__(  # type: ignore[override]
        self,
        inputs_q: jax.Array,
        mask: jax.Array | None = None,
        deterministic: bool | None = None,
        dropout_rng: Any = None,
        sow_weights: bool = False,
    ) -> jax.Array:
        return super().__call__(
            inputs_q,
            mask=mask,
            deterministic=deterministic,
            dropout_rng=dropout_rng,
            sow_weights=sow_weights,
        )
