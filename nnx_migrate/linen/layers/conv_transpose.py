"""Transposed convolution (flax 0.12.8, linen/linear.py)."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from flax.typing import Array, Dtype, Initializer, PaddingLike, PrecisionLike
from jax import lax
from jax.nn import initializers

from nnx_migrate.linen.layers.operations import PromoteDtypeFn, add_features, default_kernel_init
from nnx_migrate.linen.module import Module, compact, nowrap
from nnx_migrate.numerics.convolution import canonicalize_padding, per_axis
from nnx_migrate.numerics.dtypes import promote_dtype


class ConvTranspose(Module):
    """``lax.conv_transpose`` of ``(*batch, *spatial, channels)``.

    Variables: ``kernel`` (*kernel_size, channels, features), or with ``transpose_kernel`` (*kernel_size,
    features, channels), and ``bias`` (features,). CIRCULAR padding wraps the output around.

    Raises:
      ValueError: ``padding`` is malformed, or ``mask`` has not the shape of the kernel.
    """

    features: int
    kernel_size: int | Sequence[int]
    strides: Sequence[int] | None = None
    padding: PaddingLike = "SAME"
    kernel_dilation: Sequence[int] | None = None
    use_bias: bool = True
    mask: Array | None = None
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = default_kernel_init
    bias_init: Initializer = initializers.zeros
    transpose_kernel: bool = False
    promote_dtype: PromoteDtypeFn = promote_dtype
    preferred_element_type: Dtype | None = None

    @compact
    def __call__(self, inputs: Array) -> Array:
        """Convolve; the batch may have any number of axes."""
        size = (self.kernel_size,) if isinstance(self.kernel_size, int) else tuple(self.kernel_size)
        batch_axes = inputs.ndim - (len(size) + 1)
        batch_shape = inputs.shape[:batch_axes]
        if batch_axes != 1:
            inputs = jnp.reshape(inputs, (-1, *inputs.shape[batch_axes:]))
        kernel = self._kernel(size, jnp.shape(inputs)[-1])
        padding = canonicalize_padding(self.padding, len(size))
        bias = None
        if self.use_bias:
            bias = self.param("bias", self.bias_init, (self.features,), self.param_dtype)
        inputs, kernel, bias = self.promote_dtype(inputs, kernel, bias, dtype=self.dtype)
        strides = per_axis(self.strides, len(size))
        y = lax.conv_transpose(
            inputs,
            kernel,
            strides,
            "VALID" if padding == "CIRCULAR" else padding,
            rhs_dilation=per_axis(self.kernel_dilation, len(size)),
            transpose_kernel=self.transpose_kernel,
            precision=self.precision,
            preferred_element_type=self.preferred_element_type,
        )
        if self.padding == "CIRCULAR":
            periods = [n * stride for n, stride in zip(inputs.shape[1:-1], strides, strict=False)]
            y = _wrap_around(y, periods, self.transpose_kernel)
        y = add_features(y, bias if self.use_bias else None)
        return y if batch_axes == 1 else jnp.reshape(y, batch_shape + y.shape[1:])

    @nowrap
    def _kernel(self, size: tuple[int, ...], channels: int) -> Any:
        """The kernel, masked."""
        ends = (channels, self.features)
        shape = size + (ends[::-1] if self.transpose_kernel else ends)
        if self.mask is not None and self.mask.shape != shape:
            raise ValueError(
                f"expected a mask of the kernel's shape {shape}, found {self.mask.shape}"
            )
        kernel = self.param("kernel", self.kernel_init, shape, self.param_dtype)
        if self.mask is not None:
            kernel *= self.mask
        return kernel


def _wrap_around(y: Any, periods: Sequence[int], pad_right: bool) -> Any:
    """``y`` with what lies beyond one period along each spatial axis added where it wraps to.

    The axes are padded to whole periods such that the input starts at one; of an odd padding the larger
    half goes to the right (as for the transpose of ``Conv``) or to the left.
    """
    missing = [
        -(n - period) % (2 * period) for n, period in zip(y.shape[1:-1], periods, strict=False)
    ]
    halves = [(amount // 2, (amount + 1) // 2) for amount in missing]
    pads = halves if pad_right else [half[::-1] for half in halves]
    y = jnp.pad(y, [(0, 0), *pads, (0, 0)])
    for axis in range(1, y.ndim - 1):
        y = y.reshape((*y.shape[:axis], -1, periods[axis - 1], *y.shape[axis + 1 :]))
        y = y.sum(axis=axis)
    return y
