"""Linear layers whose native counterpart differs: Einsum (bias shape), Embed (attend), ConvLocal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from flax.nnx.nn.linear import default_embed_init, default_kernel_init
from jax import lax

from nnx_migrate.nn.layers.dtypes import promote_dtype as linen_promotion
from nnx_migrate.nn.variables.deferred_init import deferred_param, initialize, is_uninitialized
from nnx_migrate.nn.variables.variables import merge_param, param
from nnx_migrate.numerics.convolution import channels_last, padded_inputs, per_axis

_abstract: Any = jax.ShapeDtypeStruct
_zeros = nnx.initializers.zeros_init()


def einsum_bias_shape(einsum_str: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Shape of the bias that Linen's ``Einsum`` infers: the kernel's axes that stay in the result.

    Args:
      einsum_str: ``"<input>,<kernel>-><result>"``; the kernel part must not hold an ellipsis.
      shape: shape of the kernel.

    Raises:
      ValueError: the equation is implicit, has not two operands, or does not fit ``shape``.
    """
    _, kernel, result = einsum_parts(einsum_str)
    if "..." in kernel or len(kernel) != len(shape) or len(set(kernel)) != len(kernel):
        raise ValueError(
            f"expected one distinct letter per kernel axis (shape {tuple(shape)}) in the second "
            f"operand of '{einsum_str}', found '{kernel}'"
        )
    sizes = dict(zip(kernel, shape, strict=True))
    return tuple(sizes[letter] for letter in result if letter in sizes)


def einsum_parts(einsum_str: str) -> tuple[str, str, str]:
    """Axis letters of input, kernel and result; ValueError unless it is two operands and a result."""
    equation = einsum_str.replace(" ", "")
    if equation.count("->") != 1 or equation.count(",") != 1:
        raise ValueError(
            "expected an equation with two operands and an explicit result "
            f"('...a,ab->...b'), found '{einsum_str}'"
        )
    operands, result = equation.split("->")
    inputs, kernel = operands.split(",")
    return inputs, kernel, result


class Einsum(nnx.Module):
    """``linen.Einsum``: ``jnp.einsum(einsum_str, inputs, kernel) + bias``.

    Args:
      shape: shape of the kernel.
      einsum_str: the equation, here or in the call (not both); with ``use_bias`` it is needed here,
        because NNX creates the bias at once.

    Raises:
      ValueError: ``use_bias`` without ``einsum_str``, or a malformed equation.
    """

    def __init__(
        self,
        shape: Sequence[int],
        einsum_str: str | None = None,
        use_bias: bool = True,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        precision: Any = None,
        kernel_init: Any = default_kernel_init,
        bias_init: Any = _zeros,
        promote_dtype: Any = linen_promotion,
        preferred_element_type: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self.shape = tuple(shape)
        self.einsum_str = einsum_str
        self.use_bias = use_bias
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        self.promote_dtype = promote_dtype
        self.preferred_element_type = preferred_element_type
        self.kernel = param(rngs, kernel_init, self.shape, param_dtype)
        self.bias: Any = nnx.data(None)
        if use_bias:
            if einsum_str is None:
                raise ValueError(
                    "Einsum with use_bias needs einsum_str in the constructor: "
                    "its bias shape follows from the equation"
                )
            bias_shape = einsum_bias_shape(einsum_str, self.shape)
            self.bias = param(rngs, bias_init, bias_shape, param_dtype)

    def __call__(self, inputs: jax.Array, einsum_str: str | None = None) -> jax.Array:
        """Transform ``inputs``; ``einsum_str`` only if the constructor had none."""
        equation = merge_param("einsum_str", self.einsum_str, einsum_str).replace(" ", "")
        lhs, kernel_letters, result = einsum_parts(equation)
        bias = self.bias[...] if self.use_bias else None
        inputs, kernel, bias = self.promote_dtype(inputs, self.kernel[...], bias, dtype=self.dtype)
        y = jnp.einsum(
            equation,
            inputs,
            kernel,
            precision=self.precision,
            preferred_element_type=self.preferred_element_type,
        )
        if bias is not None:
            # "..." stands for as many axes as the input has beyond its letters.
            hidden = inputs.ndim - len(lhs.replace("...", ""))
            axes = list(result.replace("...", "." * hidden))
            sizes = dict(zip(kernel_letters, self.shape, strict=True))
            y += jnp.reshape(bias, [sizes.get(axis, 1) for axis in axes])
        return y


class Embed(nnx.Embed):
    """``linen.Embed``: as ``nnx.Embed``, but ``attend`` promotes to the common dtype as Linen does.

    The native layer replaces ``dtype=None`` by the table's dtype, so that a float32 query meets a
    bfloat16 table in bfloat16.
    """

    def __init__(
        self,
        num_embeddings: int,
        features: int,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        embedding_init: Any = default_embed_init,
        *,
        rngs: nnx.Rngs,
        **options: Any,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        super().__init__(
            num_embeddings,
            features,
            dtype=dtype,
            param_dtype=param_dtype,
            embedding_init=embedding_init,
            rngs=rngs,
            **options,
        )
        self.dtype = dtype


class ConvLocal(nnx.Module):
    """``linen.ConvLocal``: a convolution with its own kernel for every output position.

    Kernel: ``(*output spatial shape, prod(kernel_size) * channels, features)``; bias:
    ``(*output spatial shape, features)``.

    Args:
      input_shape: shape of the input, ``(*batch, *spatial, channels)``; only the spatial sizes and
        the channels matter. None: that of the first call, which makes the parameters
        (:func:`nnx_migrate.nn.variables.deferred_init.deferred_param`).
      mask: array of the kernel's shape to multiply it with.
    """

    def __init__(
        self,
        features: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] | None = 1,
        padding: Any = "SAME",
        input_dilation: int | Sequence[int] | None = 1,
        kernel_dilation: int | Sequence[int] | None = 1,
        feature_group_count: int = 1,
        use_bias: bool = True,
        mask: Any = None,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        precision: Any = None,
        kernel_init: Any = default_kernel_init,
        bias_init: Any = _zeros,
        promote_dtype: Any = linen_promotion,
        *,
        input_shape: Sequence[int] | None = None,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        if feature_group_count != 1:
            raise NotImplementedError(
                f"ConvLocal supports feature_group_count=1 only, found {feature_group_count}"
            )
        size = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
        self.features = features
        self.kernel_size = size
        self.strides = per_axis(strides, len(size))
        self.padding = padding
        self.input_dilation = per_axis(input_dilation, len(size))
        self.kernel_dilation = per_axis(kernel_dilation, len(size))
        self.use_bias = use_bias
        self.mask = nnx.data(mask)
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        self.promote_dtype = promote_dtype
        self.kernel = deferred_param(rngs, kernel_init)
        self.bias: Any = deferred_param(rngs, bias_init) if use_bias else nnx.data(None)
        if input_shape is not None:
            self._make_parameters(tuple(input_shape))

    def _make_parameters(self, input_shape: tuple[int, ...]) -> None:
        """Make their arrays, for an input of this shape."""
        spatial = self._output_spatial_shape(input_shape[-len(self.kernel_size) - 1 :])
        kernel_shape = (*spatial, math.prod(self.kernel_size) * input_shape[-1], self.features)
        if self.mask is not None and self.mask.shape != kernel_shape:
            raise ValueError(f"expected a mask of shape {kernel_shape}, found {self.mask.shape}")
        initialize(self.kernel, kernel_shape, self.param_dtype)
        if self.use_bias:
            initialize(self.bias, (*spatial, self.features), self.param_dtype)

    def _output_spatial_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Spatial output sizes for one input of ``(*spatial, channels)``."""

        def convolve(x: jax.Array, kernel: jax.Array) -> jax.Array:
            padded_input, padding = self._pad(x)
            return lax.conv_general_dilated(
                padded_input,
                kernel,
                self.strides,
                padding,
                lhs_dilation=self.input_dilation,
                rhs_dilation=self.kernel_dilation,
                dimension_numbers=channels_last(x.shape),
            )

        inputs = _abstract((1, *shape), jnp.float32)
        kernel = _abstract((*self.kernel_size, shape[-1], self.features), jnp.float32)
        output = jax.eval_shape(convolve, inputs, kernel)
        return tuple(output.shape[1:-1])

    def _pad(self, inputs: jax.Array) -> tuple[jax.Array, Any]:
        """``inputs`` after Linen's own padding modes, and the padding left for ``lax``."""
        return padded_inputs(inputs, self.padding, self.kernel_size, self.kernel_dilation)

    def __call__(self, inputs: jax.Array) -> jax.Array:
        """Convolve ``(*batch, *spatial, channels)``; the batch may have any number of axes."""
        if is_uninitialized(self.kernel):
            self._make_parameters(inputs.shape)
        batch_axes = inputs.ndim - (len(self.kernel_size) + 1)
        batch_shape = inputs.shape[:batch_axes]
        if batch_axes != 1:
            inputs = jnp.reshape(inputs, (-1, *inputs.shape[batch_axes:]))
        inputs, padding = self._pad(inputs)
        kernel = self.kernel[...]
        if self.mask is not None:
            kernel *= self.mask
        bias = self.bias[...] if self.use_bias else None
        inputs, kernel, bias = self.promote_dtype(inputs, kernel, bias, dtype=self.dtype)
        y = lax.conv_general_dilated_local(
            lhs=inputs,
            rhs=kernel,
            window_strides=self.strides,
            padding=padding,
            filter_shape=self.kernel_size,
            lhs_dilation=self.input_dilation,
            rhs_dilation=self.kernel_dilation,
            dimension_numbers=channels_last(inputs.shape),
            precision=self.precision,
        )
        if bias is not None:
            y += bias.reshape((1,) * (y.ndim - bias.ndim) + bias.shape)
        return y if batch_axes == 1 else jnp.reshape(y, batch_shape + y.shape[1:])
