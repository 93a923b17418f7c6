"""Layers whose parameters have axis names: ``flax.linen.experimental.layers_with_named_axes`` (flax 0.12.8)."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
from flax.typing import Array, Axes, DotGeneralT, Dtype, Initializer, PrecisionLike
from jax import lax

from nnx_migrate import linen as nn
from nnx_migrate.linen import initializers
from nnx_migrate.linen.layers.operations import (
    add_features,
    default_embed_init,
    default_kernel_init,
    select_operation,
)
from nnx_migrate.linen.module import Module, compact
from nnx_migrate.linen.partitioning import param_with_axes, with_sharding_constraint
from nnx_migrate.numerics.norms import feature_shapes, positive_axes, squared_magnitude

__all__ = [
    "Activation",
    "Any",
    "Array",
    "Axes",
    "Callable",
    "Dense",
    "DotGeneralT",
    "Dtype",
    "Embed",
    "Initializer",
    "Iterable",
    "LayerNorm",
    "PrecisionLike",
    "Sequence",
    "dataclasses",
    "default_embed_init",
    "default_kernel_init",
    "initializers",
    "jnp",
    "lax",
    "nn",
    "param_with_axes",
    "with_sharding_constraint",
]

Activation = Callable[..., Array]
_canonicalize_axes = positive_axes
_abs_sq = squared_magnitude


class Dense(Module):
    """``inputs @ kernel + bias`` over the last axis, in ``dtype``.

    Variables: ``kernel`` (in_features, features) with the names ``kernel_axes`` and, with ``use_bias``, ``bias``
    (features,) with the last of them.
    """

    features: int
    use_bias: bool = True
    dtype: Dtype = jnp.float32
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = default_kernel_init
    bias_init: Initializer = initializers.zeros_init()
    kernel_axes: tuple[str, ...] = ()
    dot_general: DotGeneralT | None = None
    dot_general_cls: Any = None

    @compact
    def __call__(self, inputs: Array) -> Array:
        """Map ``(*batch, in_features)`` to ``(*batch, features)``."""
        inputs = jnp.asarray(inputs, self.dtype)
        shape = (inputs.shape[-1], self.features)
        kernel = param_with_axes(
            "kernel", self.kernel_init, shape, self.param_dtype, axes=self.kernel_axes
        )
        kernel = jnp.asarray(kernel, self.dtype)
        dot_general = select_operation(self.dot_general_cls, self.dot_general, lax.dot_general)
        contraction = (((inputs.ndim - 1,), (0,)), ((), ()))
        y = dot_general(inputs, kernel, contraction, precision=self.precision)
        if not self.use_bias:
            return y
        bias = param_with_axes(
            "bias",
            self.bias_init,
            (self.features,),
            self.param_dtype,
            axes=(self.kernel_axes[-1],),
        )
        return add_features(y, jnp.asarray(bias, self.dtype))


class Embed(Module):
    """Rows of a table by integer index, in ``dtype``.

    Variables: ``embedding`` (num_embeddings, features) with the names ``vocab`` and ``embed``. ``one_hot``
    multiplies by a one-hot matrix instead of gathering.
    """

    num_embeddings: int
    features: int
    cast_input_dtype: Dtype | None = None
    dtype: Dtype = jnp.float32
    param_dtype: Dtype = jnp.float32
    attend_dtype: Dtype | None = None
    embedding_init: Initializer = default_embed_init
    one_hot: bool = False
    embedding: Array = dataclasses.field(init=False)

    def setup(self) -> None:
        """Make the table."""
        self.embedding = param_with_axes(
            "embedding",
            self.embedding_init,
            (self.num_embeddings, self.features),
            self.param_dtype,
            axes=("vocab", "embed"),
        )

    def __call__(self, inputs: Array) -> Array:
        """Look up integers ``(*batch,)``: ``(*batch, features)``.

        Raises:
          ValueError: ``inputs`` are not integers, and ``cast_input_dtype`` does not make them so.
        """
        if self.cast_input_dtype:
            inputs = inputs.astype(self.cast_input_dtype)
        if not jnp.issubdtype(inputs.dtype, jnp.integer):
            raise ValueError(f"Input type must be an integer, found {inputs.dtype}")
        if self.one_hot:
            index = lax.iota(jnp.int32, self.num_embeddings)
            one_hot = jnp.array(inputs[..., jnp.newaxis] == index, dtype=self.dtype)
            return jnp.dot(one_hot, jnp.asarray(self.embedding, self.dtype))
        rows = jnp.asarray(self.embedding, self.dtype)[inputs]
        return with_sharding_constraint(rows, ("batch", "length", "embed"))

    def attend(self, query: Array) -> Array:
        """Products of ``(*batch, features)`` with every row: ``(*batch, num_embeddings)``."""
        dtype = self.dtype if self.attend_dtype is None else self.attend_dtype
        return jnp.dot(query, jnp.asarray(self.embedding, dtype).T)


def _compute_stats(x: Any, axes: Axes) -> tuple[Array, Array]:
    """Mean and variance over ``axes``, in float32 or better."""
    x = jnp.asarray(x, jnp.promote_types(jnp.float32, jnp.result_type(x)))
    mean = jnp.mean(x, axes)
    mean_of_squares = jnp.mean(squared_magnitude(x), axes)
    # Rounding can make the difference negative.
    return mean, jnp.maximum(0.0, mean_of_squares - squared_magnitude(mean))


def _normalize(
    mdl: Any,
    x: Array,
    mean: Array,
    var: Array,
    reduction_axes: Axes,
    feature_axes: Axes,
    dtype: Dtype,
    param_dtype: Dtype,
    epsilon: float,
    use_bias: bool,
    use_scale: bool,
    bias_init: Initializer,
    scale_init: Initializer,
) -> Any:
    """``x`` normalised, with ``scale`` and ``bias`` made by ``mdl.param_with_axes``.

    A module has no such method unless its class brings one; Linen's layer is the same there.
    """
    kept_shape = list(x.shape)
    for axis in positive_axes(x.ndim, reduction_axes):
        kept_shape[axis] = 1
    mean, var = mean.reshape(kept_shape), var.reshape(kept_shape)
    shape, broadcast_shape = feature_shapes(x.shape, positive_axes(x.ndim, feature_axes))

    def parameter(name: str, init: Initializer) -> Any:
        value = mdl.param_with_axes(name, init, shape, param_dtype, axes=("embed",))
        return value.reshape(broadcast_shape)

    y = x - mean
    factor = lax.rsqrt(var + epsilon)
    if use_scale:
        factor *= parameter("scale", scale_init)
    y *= factor
    if use_bias:
        y += parameter("bias", bias_init)
    return jnp.asarray(y, dtype)


class LayerNorm(Module):
    """Normalisation over the last axis, in ``dtype``.

    Variables: ``scale`` and ``bias`` (features,), made by ``self.param_with_axes`` with the name ``embed``: as in
    Linen the class itself has no such method, so it is of use without either, or in a subclass.
    """

    epsilon: float = 1e-6
    dtype: Any = jnp.float32
    param_dtype: Dtype = jnp.float32
    use_bias: bool = True
    use_scale: bool = True
    bias_init: Initializer = initializers.zeros_init()
    scale_init: Initializer = initializers.ones_init()

    @compact
    def __call__(self, x: Any) -> Any:
        """Normalise ``(*batch, features)``."""
        mean, var = _compute_stats(x, (-1,))
        return _normalize(
            self,
            x,
            mean,
            var,
            (-1,),
            (-1,),
            self.dtype,
            self.param_dtype,
            self.epsilon,
            self.use_bias,
            self.use_scale,
            self.bias_init,
            self.scale_init,
        )
