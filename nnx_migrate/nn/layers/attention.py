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

from nnx_migrate.nn.layers.dot_product import dot_product_attention, dot_product_attention_weights
from nnx_migrate.nn.layers.dtypes import canonicalize_dtype, linen_dot_general
from nnx_migrate.nn.layers.normalization import LayerNorm
from nnx_migrate.nn.variables.state import is_initializing, may_make
from nnx_migrate.nn.variables.variables import mode, stream
from nnx_migrate.numerics.attention import append_position, filled_positions

_zeros = nnx.initializers.zeros_init()

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

    query: nnx.LinearGeneral
    key: nnx.LinearGeneral
    value: nnx.LinearGeneral
    query_ln: LayerNorm
    key_ln: LayerNorm
    dropout_stream: Any
    cached_key: Any
    cached_value: Any
    cache_index: Any

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
        bias_init: Any = _zeros,
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
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
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
        self.is_fixed = deterministic is not None
        self.precision = precision
        self.attention_fn = attention_fn
        self.decode = decode
        self.normalize_qk = normalize_qk
        self.force_fp32_for_softmax = force_fp32_for_softmax

        linear = functools.partial(
            nnx.LinearGeneral,
            use_bias=use_bias,
            dtype=dtype,
            param_dtype=param_dtype,
            precision=precision,
            rngs=rngs,
        )
        heads = (num_heads, self.head_dim)
        kv_size = in_kv_features or in_features
        sizes = {"query": in_features, "key": kv_size, "value": in_v_features or kv_size}
        inits = {"kernel_init": kernel_init, "bias_init": bias_init}
        for name, size in sizes.items():
            projection = linear(
                size, heads, dot_general=_with_linen_signature(qkv_dot_general), **inits
            )
            setattr(self, name, projection)
        self.out = linear(
            heads,
            self.out_features,
            axis=(-2, -1),
            kernel_init=out_kernel_init or kernel_init,
            bias_init=out_bias_init or bias_init,
            dot_general=_with_linen_signature(out_dot_general),
        )
        if normalize_qk:
            self._build_norms(rngs)
        self.dropout_stream = nnx.data(stream(rngs, "dropout") if dropout_rate > 0.0 else None)
        self.cached_key = nnx.data(None)
        self.cached_value = nnx.data(None)
        self.cache_index = nnx.data(None)
        self.is_prepared = False  # whether it had an empty cache before any call
        if decode and cache_shape is not None:
            self.init_cache(cache_shape)

    def _build_norms(self, rngs: nnx.Rngs) -> None:
        for name in ("query_ln", "key_ln"):
            norm = LayerNorm(
                dtype=self.dtype,
                param_dtype=self.param_dtype,
                use_bias=False,
                in_features=self.head_dim,
                rngs=rngs,
            )
            setattr(self, name, norm)

    def init_cache(self, input_shape: Sequence[int], dtype: Any = jnp.float32) -> None:
        """Empty the cache for key inputs of ``(*batch, max_length, features)`` and ``dtype``."""
        if self.dtype is not None:
            dtype = self.dtype
        else:
            dtype = canonicalize_dtype(jnp.zeros((), dtype), jnp.zeros((), self.param_dtype))
        shape = (*input_shape[:-1], self.num_heads, self.head_dim)
        self.is_prepared = True
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
            key, value, mask = self._append_to_cache(query, key, value, mask)
        passing = True
        if self.dropout_rate > 0.0:
            passing = mode(
                "deterministic", self.deterministic, deterministic, is_fixed=self.is_fixed
            )
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
        parameters = inspect.signature(self.attention_fn).parameters
        options = {name: option for name, option in options.items() if name in parameters}
        if sow_weights:
            options["module"] = self
        return self.out(self.attention_fn(query, key, value, **options))

    def _append_to_cache(self, query: Any, key: Any, value: Any, mask: Any) -> tuple[Any, Any, Any]:
        """Append one position to the cache; the whole cache and the mask of what is filled.

        A call of Linen's that may change caches makes the one that it has not, and leaves it empty.
        """
        if self.cached_key is None and may_make("cache"):
            self.cached_key = nnx.Cache(jnp.zeros(key.shape, key.dtype))
            self.cached_value = nnx.Cache(jnp.zeros(value.shape, value.dtype))
            self.cache_index = nnx.Cache(jnp.array(0, dtype=jnp.int32))
            return key, value, mask
        if self.is_prepared and is_initializing():
            return key, value, mask
        if self.cached_key is None:
            raise ValueError("decode=True needs a cache: call init_cache(input_shape) first")
        *batch, _, heads, depth = self.cached_key.shape
        expected = (*batch, 1, heads, depth)
        if query.shape != expected:
            raise ValueError(f"expected a query of shape {expected}, found {query.shape}")
        index = self.cache_index[...]
        key, value = append_position(
            self.cached_key[...], self.cached_value[...], index, key, value
        )
        self.cached_key.set_value(key)
        self.cached_value.set_value(value)
        self.cache_index.set_value(self.cache_index[...] + 1)
        cache_mask = filled_positions(index, self.cached_key.shape)
        return key, value, combine_masks(mask, cache_mask)

    def set_view(self, deterministic: bool | None = None, decode: bool | None = None) -> None:
        """Used by ``nnx.view``; ``train()`` and ``eval()`` set ``deterministic`` too."""
        if deterministic is not None:
            self.deterministic = deterministic
        if decode is not None:
            self.decode = decode


def _refuse(**fields: Any) -> None:
    names = [name for name, value in fields.items() if value is not None]
    if names:
        raise TypeError(f"not supported in NNX: {', '.join(names)} (quantisation hooks of Linen)")


def _with_linen_signature(dot_general: Any) -> Any:
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
        """Attend within ``inputs_q`` of ``(*batch, length, features)``."""
        return super().__call__(
            inputs_q,
            mask=mask,
            deterministic=deterministic,
            dropout_rng=dropout_rng,
            sow_weights=sow_weights,
        )
