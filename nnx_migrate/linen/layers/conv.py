"""Convolutions (flax 0.12.8, linen/linear.py)."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax.typing import Array, ConvGeneralDilatedT, Dtype, Initializer, PaddingLike, PrecisionLike
from jax import lax
from jax.core import ShapedArray
from jax.nn import initializers

from nnx_migrate.linen.layers.operations import (
    PromoteDtypeFn,
    default_kernel_init,
    select_operation,
)
from nnx_migrate.linen.module import Module, compact, nowrap
from nnx_migrate.numerics.convolution import channels_last, padded_inputs, per_axis
from nnx_migrate.numerics.dtypes import promote_dtype

_abstract: Any = ShapedArray


class ConvBase(Module):
    """What :class:`Conv` and :class:`ConvLocal` share: all but the shape of the kernel.

    Raises:
      ValueError: ``padding`` is malformed, or CAUSAL over more than one axis; ``mask`` has not the shape of
        the kernel.
    """

    features: int
    kernel_size: int | Sequence[int]
    strides: int | Sequence[int] | None = 1
    padding: PaddingLike = "SAME"
    input_dilation: int | Sequence[int] | None = 1
    kernel_dilation: int | Sequence[int] | None = 1
    feature_group_count: int = 1
    use_bias: bool = True
    mask: Array | None = None
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = default_kernel_init
    bias_init: Initializer = initializers.zeros
    promote_dtype: PromoteDtypeFn = promote_dtype
    conv_general_dilated: ConvGeneralDilatedT | None = None
    conv_general_dilated_cls: Any = None

    @property
    def shared_weights(self) -> bool:
        """Whether all output positions have one kernel."""
        raise NotImplementedError

    @compact
    def __call__(self, inputs: Array) -> Array:
        """Convolve ``(*batch, *spatial, channels)``; the batch may have any number of axes."""
        size = (self.kernel_size,) if isinstance(self.kernel_size, int) else tuple(self.kernel_size)
        batch_axes = inputs.ndim - (len(size) + 1)
        batch_shape = inputs.shape[:batch_axes]
        if batch_axes != 1:
            inputs = jnp.reshape(inputs, (-1, *inputs.shape[batch_axes:]))
        dilation = per_axis(self.kernel_dilation, len(size))
        inputs, padding = padded_inputs(inputs, self.padding, size, dilation)
        settings = {
            "window_strides": per_axis(self.strides, len(size)),
            "padding": padding,
            "lhs_dilation": per_axis(self.input_dilation, len(size)),
            "rhs_dilation": dilation,
            "dimension_numbers": channels_last(inputs.shape),
        }
        kernel_shape, bias_shape = self._shapes(inputs, size, settings)
        if self.mask is not None and self.mask.shape != kernel_shape:
            raise ValueError(
                f"expected a mask of the kernel's shape {kernel_shape}, found {self.mask.shape}"
            )
        kernel = self.param("kernel", self.kernel_init, kernel_shape, self.param_dtype)
        if self.mask is not None:
            kernel *= self.mask
        bias = None
        if self.use_bias:
            bias = self.param("bias", self.bias_init, bias_shape, self.param_dtype)
        inputs, kernel, bias = self.promote_dtype(inputs, kernel, bias, dtype=self.dtype)
        y = self._convolve(inputs, kernel, size, settings)
        if self.use_bias:
            y += bias.reshape((1,) * (y.ndim - bias.ndim) + bias.shape)
        return y if batch_axes == 1 else jnp.reshape(y, batch_shape + y.shape[1:])

    @nowrap
    def _shapes(self, inputs: Any, size: tuple[int, ...], settings: Any) -> tuple[Any, Any]:
        """Shapes of kernel and bias."""
        channels = jnp.shape(inputs)[-1]
        if self.shared_weights:
            assert channels % self.feature_group_count == 0, (
                f"{channels} channels do not divide into {self.feature_group_count} groups"
            )
            kernel = (*size, channels // self.feature_group_count, self.features)
            return kernel, (self.features,)
        if self.feature_group_count != 1:
            raise NotImplementedError(
                f"ConvLocal supports feature_group_count=1, found {self.feature_group_count}"
            )
        one_kernel = _abstract((*size, channels, self.features), inputs.dtype)
        output = jax.eval_shape(
            lambda lhs, rhs: self._operation()(lhs=lhs, rhs=rhs, **settings), inputs, one_kernel
        )
        spatial = output.shape[1:-1]
        return (*spatial, math.prod(size) * channels, self.features), (*spatial, self.features)

    @nowrap
    def _operation(self) -> Any:
        return select_operation(
            self.conv_general_dilated_cls, self.conv_general_dilated, lax.conv_general_dilated
        )

    @nowrap
    def _convolve(self, inputs: Any, kernel: Any, size: tuple[int, ...], settings: Any) -> Any:
        if not self.shared_weights:
            return lax.conv_general_dilated_local(
                lhs=inputs, rhs=kernel, filter_shape=size, precision=self.precision, **settings
            )
        # Strides and padding by position, as replacements of the operation may expect.
        named = dict(settings)
        strides, padding = named.pop("window_strides"), named.pop("padding")
        return self._operation()(
            inputs,
            kernel,
            strides,
            padding,
            feature_group_count=self.feature_group_count,
            precision=self.precision,
            **named,
        )


class Conv(ConvBase):
    """A convolution of ``(*batch, *spatial, channels)``.

    Variables: ``kernel`` (*kernel_size, channels // feature_group_count, features) and, with ``use_bias``,
    ``bias`` (features,). ``padding`` is also CIRCULAR, REFLECT or CAUSAL.
    """

    @property
    def shared_weights(self) -> bool:
        """True: one kernel."""
        return True


class ConvLocal(ConvBase):
    """A convolution with a kernel of its own for every output position.

    Variables: ``kernel`` (*output spatial, prod(kernel_size) * channels, features) and, with ``use_bias``,
    ``bias`` (*output spatial, features).

    Raises:
      NotImplementedError: ``feature_group_count`` is not 1.
    """

    @property
    def shared_weights(self) -> bool:
        """False: one kernel per position."""
        return False
