"""Multi-head attention (flax 0.12.8, linen/attention.py)."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from flax.typing import Array, DotGeneralT, Dtype, Initializer, PrecisionLike, PRNGKey
from jax.nn import initializers

from nnx_migrate.linen.layers.dense import DenseGeneral
from nnx_migrate.linen.layers.dot_product import combine_masks, dot_product_attention
from nnx_migrate.linen.layers.layer_norm import LayerNorm
from nnx_migrate.linen.layers.operations import default_kernel_init
from nnx_migrate.linen.module import Module, compact, merge_param, nowrap
from nnx_migrate.numerics.attention import append_position, filled_positions


class MultiHeadDotProductAttention(Module):
    """Attention with projections ``query``, ``key``, ``value`` and ``out`` (and ``query_ln``, ``key_ln``).

    With ``decode`` the call that makes variables also makes the collection ``cache`` (``cached_key``,
    ``cached_value``, ``cache_index``) for its input's length; later calls take one position at a time.
    ``deterministic`` (no dropout) is a field or an argument of the call, not both.

    Raises:
      AssertionError: the heads do not divide ``qkv_features``.
      ValueError: inputs exclude each other, or do not fit the cache.
    """

    num_heads: int
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    qkv_features: int | None = None
    out_features: int | None = None
    broadcast_dropout: bool = True
    dropout_rate: float = 0.0
    deterministic: bool | None = None
    precision: PrecisionLike = None
    kernel_init: Initializer = default_kernel_init
    out_kernel_init: Initializer | None = None
    bias_init: Initializer = initializers.zeros
    out_bias_init: Initializer | None = None
    use_bias: bool = True
    attention_fn: Callable[..., Array] = dot_product_attention
    decode: bool = False
    normalize_qk: bool = False
    force_fp32_for_softmax: bool = False
    qkv_dot_general: DotGeneralT | None = None
    out_dot_general: DotGeneralT | None = None
    qkv_dot_general_cls: Any = None
    out_dot_general_cls: Any = None
    qk_attn_weights_einsum_cls: Callable[..., Callable[..., Array]] | None = None
    attn_weights_value_einsum_cls: Callable[..., Callable[..., Array]] | None = None

    @compact
    def __call__(
        self,
        inputs_q: Array,
        inputs_k: Array | None = None,
        inputs_v: Array | None = None,
        *,
        inputs_kv: Array | None = None,
        mask: Array | None = None,
        deterministic: bool | None = None,
        dropout_rng: PRNGKey | None = None,
        sow_weights: bool = False,
    ) -> Any:
        """Attend from ``inputs_q`` to ``inputs_k``/``inputs_v``, each ``(*batch, length, features)``.

        Keys default to the queries and values to the keys. ``mask`` broadcasts to ``(*batch, heads,
        q_length, kv_length)``. ``dropout_rng`` is used in place of a key of the stream ``dropout``. The result is
        ``(*batch, q_length, out_features)``.
        """
        inputs_k, inputs_v = _key_value_inputs(inputs_q, inputs_k, inputs_v, inputs_kv)
        query, key, value = self._project(inputs_q, inputs_k, inputs_v)
        if self.decode:
            key, value, mask = self._append_to_cache(query, key, value, mask)
        passing = True
        if self.dropout_rate > 0.0:
            passing = merge_param("deterministic", self.deterministic, deterministic)
            if not passing and dropout_rng is None:
                dropout_rng = self.make_rng("dropout")
        options = {
            **self._attention_options(),
            "mask": mask,
            "dropout_rng": dropout_rng,
            "deterministic": passing,
        }
        # A user's attention_fn need not know every option.
        parameters = inspect.signature(self.attention_fn).parameters
        options = {name: option for name, option in options.items() if name in parameters}
        if sow_weights:
            options["module"] = self
        attention = self.attention_fn(query, key, value, **options)
        out = self._projection(
            "out",
            features=self.out_features or inputs_q.shape[-1],
            axis=(-2, -1),
            kernel_init=self.out_kernel_init or self.kernel_init,
            bias_init=self.out_bias_init or self.bias_init,
            dot_general=self.out_dot_general,
            dot_general_cls=self.out_dot_general_cls,
        )
        return out(attention)

    @nowrap
    def _projection(self, name: str, **options: Any) -> Any:
        return DenseGeneral(
            name=name,
            use_bias=self.use_bias,
            dtype=self.dtype,
            param_dtype=self.param_dtype,
            precision=self.precision,
            **options,
        )

    @nowrap
    def _project(self, inputs_q: Any, inputs_k: Any, inputs_v: Any) -> tuple[Any, Any, Any]:
        """Queries, keys and values ``(*batch, length, heads, depth)``."""
        qkv_features = self.qkv_features or inputs_q.shape[-1]
        assert qkv_features % self.num_heads == 0, (
            f"qkv_features ({qkv_features}) must be divisible by num_heads ({self.num_heads})"
        )
        projection = functools.partial(
            self._projection,
            features=(self.num_heads, qkv_features // self.num_heads),
            axis=-1,
            kernel_init=self.kernel_init,
            bias_init=self.bias_init,
            dot_general=self.qkv_dot_general,
            dot_general_cls=self.qkv_dot_general_cls,
        )
        query = projection("query")(inputs_q)
        key = projection("key")(inputs_k)
        value = projection("value")(inputs_v)
        if self.normalize_qk:
            options = {"use_bias": False, "dtype": self.dtype, "param_dtype": self.param_dtype}
            query = LayerNorm(name="query_ln", **options)(query)
            key = LayerNorm(name="key_ln", **options)(key)
        return query, key, value

    @nowrap
    def _append_to_cache(self, query: Any, key: Any, value: Any, mask: Any) -> tuple[Any, Any, Any]:
        """The cached keys and values with this position's, and ``mask`` for what is filled.

        In the call that makes the cache: what came in.
        """
        is_there = self.has_variable("cache", "cached_key")
        keys = self.variable("cache", "cached_key", jnp.zeros, key.shape, key.dtype)
        values = self.variable("cache", "cached_value", jnp.zeros, value.shape, value.dtype)
        position = self.variable("cache", "cache_index", lambda: jnp.array(0, dtype=jnp.int32))
        if not is_there:
            return key, value, mask
        *batch, _, heads, depth = keys.value.shape
        expected = (*batch, 1, heads, depth)
        if expected != query.shape:
            raise ValueError(
                f"Autoregressive cache shape error, expected query shape {expected} instead got "
                f"{query.shape}."
            )
        index = position.value
        keys.value, values.value = append_position(keys.value, values.value, index, key, value)
        position.value = position.value + 1
        cache_mask = filled_positions(index, keys.value.shape)
        return keys.value, values.value, combine_masks(mask, cache_mask)

    @nowrap
    def _attention_options(self) -> dict[str, Any]:
        """What the fields say about ``attention_fn``."""
        einsum, value_einsum = self.qk_attn_weights_einsum_cls, self.attn_weights_value_einsum_cls
        return {
            "dropout_rate": self.dropout_rate,
            "broadcast_dropout": self.broadcast_dropout,
            "dtype": self.dtype,
            "precision": self.precision,
            "force_fp32_for_softmax": self.force_fp32_for_softmax,
            "qk_attn_weights_einsum": einsum() if einsum else None,
            "attn_weights_value_einsum": value_einsum() if value_einsum else None,
        }


def _key_value_inputs(q: Any, k: Any, v: Any, kv: Any) -> tuple[Any, Any]:
    """The inputs of keys and values; warns of two ways to call that flax is giving up."""
    if kv is not None:
        if k is not None or v is not None:
            raise ValueError(
                "If either `inputs_k` or `inputs_v` is not None, `inputs_kv` must be None. Pass "
                "`inputs_k` and `inputs_v`."
            )
        warnings.warn(
            "The inputs_kv arg will be deprecated soon. Pass inputs_k and inputs_v.",
            DeprecationWarning,
            stacklevel=3,
        )
        return kv, kv
    if k is None:
        if v is not None:
            raise ValueError(
                "`inputs_k` cannot be None if `inputs_v` is not None. For keys and values of one "
                "input pass `inputs_k` alone."
            )
        return q, q
    if v is None:
        return k, k
    if v.shape[-1] == v.shape[-2]:
        warnings.warn(
            f"`inputs_v` has shape {v.shape}; is it meant as `mask`? In flax 0.7.4 the function "
            "signature of MultiHeadDotProductAttention's `__call__` method has changed: pass masks "
            "as mask=...",
            DeprecationWarning,
            stacklevel=3,
        )
    return k, v


class MultiHeadAttention(MultiHeadDotProductAttention):
    """:class:`MultiHeadDotProductAttention` under its other automatic name."""


class SelfAttention(MultiHeadDotProductAttention):
    """Attention of the inputs to themselves; flax is giving it up."""

    @compact
    def __call__(
        self,
        inputs_q: Array,
        mask: Array | None = None,
        deterministic: bool | None = None,
        dropout_rng: PRNGKey | None = None,
        sow_weights: bool = False,
    ) -> Any:
        """Attend within ``inputs_q`` of ``(*batch, length, features)``."""
        warnings.warn(
            "SelfAttention will be deprecated soon. Use "
            "`MultiHeadDotProductAttention.__call__(inputs_q)` instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        return super().__call__(
            inputs_q,
            mask=mask,
            deterministic=deterministic,
            dropout_rng=dropout_rng,
            sow_weights=sow_weights,
        )
