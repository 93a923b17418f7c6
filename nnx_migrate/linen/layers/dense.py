"""Linear maps over one axis or several (flax 0.12.8, linen/linear.py)."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from flax.typing import Array, DotGeneralT, Dtype, Initializer, PrecisionLike
from jax import lax
from jax.nn import initializers

from nnx_migrate.linen.layers.operations import (
    PromoteDtypeFn,
    add_features,
    default_kernel_init,
    flat_init,
    select_operation,
)
from nnx_migrate.linen.module import Module, compact
from nnx_migrate.numerics.axes import as_tuple, sorted_axes
from nnx_migrate.numerics.dtypes import promote_dtype


class Dense(Module):
    """``inputs @ kernel + bias`` over the last axis.

    Variables: ``kernel`` (in_features, features) and, with ``use_bias``, ``bias`` (features,), both of
    ``param_dtype``. Input and parameters are cast by ``promote_dtype`` to ``dtype`` (None: their common one).
    """

    features: int
    use_bias: bool = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = default_kernel_init
    bias_init: Initializer = initializers.zeros
    promote_dtype: PromoteDtypeFn = promote_dtype
    dot_general: DotGeneralT | None = None
    dot_general_cls: Any = None

    @compact
    def __call__(self, inputs: Array) -> Array:
        """Map ``(*batch, in_features)`` to ``(*batch, features)``."""
        shape = (jnp.shape(inputs)[-1], self.features)
        kernel = self.param("kernel", self.kernel_init, shape, self.param_dtype)
        bias = None
        if self.use_bias:
            bias = self.param("bias", self.bias_init, (self.features,), self.param_dtype)
        inputs, kernel, bias = self.promote_dtype(inputs, kernel, bias, dtype=self.dtype)
        dot_general = select_operation(self.dot_general_cls, self.dot_general, lax.dot_general)
        contraction = (((inputs.ndim - 1,), (0,)), ((), ()))
        return add_features(
            dot_general(inputs, kernel, contraction, precision=self.precision), bias
        )


class DenseGeneral(Module):
    """A linear map over the axes ``axis``, with a kernel of its own for each index of ``batch_dims``.

    Variables: ``kernel`` (*batch_dims sizes, *axis sizes, *features) and, with ``use_bias``, ``bias``
    (*batch_dims sizes, *features). Initialisers see the kernel as a matrix and the bias flat.

    Raises:
      ValueError: ``batch_dims`` are not the first axes.
    """

    features: int | Sequence[int]
    axis: int | Sequence[int] = -1
    batch_dims: Sequence[int] = ()
    use_bias: bool = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    kernel_init: Initializer = default_kernel_init
    bias_init: Initializer = initializers.zeros
    precision: PrecisionLike = None
    promote_dtype: PromoteDtypeFn = promote_dtype
    dot_general: DotGeneralT | None = None
    dot_general_cls: Any = None

    @compact
    def __call__(self, inputs: Array) -> Array:
        """Map to ``(*batch_dims, *other axes, *features)``."""
        features = as_tuple(self.features)
        batch_dims = as_tuple(self.batch_dims)
        if batch_dims and set(batch_dims) != set(range(max(batch_dims) + 1)):
            raise ValueError(
                f"batch_dims {batch_dims} must be consecutive leading dimensions starting from 0."
            )
        axis = sorted_axes(as_tuple(self.axis), inputs.ndim)
        batch = sorted_axes(batch_dims, inputs.ndim)
        n_batch, n_axis, n_features = len(batch), len(axis), len(features)

        def as_matrix(shape: Sequence[int]) -> tuple[int, ...]:
            rows = math.prod(shape[:n_batch]) * math.prod(shape[n_batch : n_batch + n_axis])
            return (rows, math.prod(shape[-n_features:]))

        def as_vector(shape: Sequence[int]) -> tuple[int, ...]:
            return (math.prod(shape[:n_batch]) * math.prod(shape[-n_features:]),)

        sizes = tuple(inputs.shape[one] for one in batch)
        shape = (*sizes, *(inputs.shape[one] for one in axis), *features)
        kernel_init = flat_init(self.kernel_init, as_matrix)
        kernel = self.param("kernel", kernel_init, shape, self.param_dtype)
        bias = None
        if self.use_bias:
            bias_init = flat_init(self.bias_init, as_vector)
            bias = self.param("bias", bias_init, sizes + features, self.param_dtype)
        # The axes that stay, as ones where the bias has one value for all.
        batch_shape = tuple(
            inputs.shape[one] if one in batch else 1
            for one in range(inputs.ndim)
            if one not in axis
        )
        inputs, kernel, bias = self.promote_dtype(inputs, kernel, bias, dtype=self.dtype)
        dot_general = select_operation(self.dot_general_cls, self.dot_general, lax.dot_general)
        contraction_axes = tuple(range(n_batch, n_batch + n_axis))
        contraction = ((axis, contraction_axes), (batch, tuple(range(n_batch))))
        y = dot_general(inputs, kernel, contraction, precision=self.precision)
        if self.use_bias:
            y += jnp.reshape(bias, batch_shape + features)
        return y
