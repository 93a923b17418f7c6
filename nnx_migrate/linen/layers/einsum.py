"""A learned einsum (flax 0.12.8, linen/linear.py)."""

import jax.numpy as jnp
import opt_einsum
from flax.typing import Array, Dtype, Initializer, PrecisionLike, Shape
from jax.nn import initializers

from nnx_migrate.linen.layers.operations import PromoteDtypeFn, default_kernel_init
from nnx_migrate.linen.module import Module, compact, merge_param
from nnx_migrate.numerics.dtypes import promote_dtype


class Einsum(Module):
    """``jnp.einsum(einsum_str, inputs, kernel) + bias``.

    Variables: ``kernel`` of ``shape``; with ``use_bias``, ``bias`` with the axes of the kernel that stay in
    the result, in its order. ``einsum_str`` is a field or an argument of the call, not both.

    Raises:
      ValueError: the equation is given twice or not at all, has no ``->``, or not two operands.
    """

    shape: Shape
    einsum_str: str | None = None
    use_bias: bool = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = default_kernel_init
    bias_init: Initializer = initializers.zeros
    promote_dtype: PromoteDtypeFn = promote_dtype
    preferred_element_type: Dtype | None = None

    @compact
    def __call__(self, inputs: Array, einsum_str: str | None = None) -> Array:
        """Transform ``inputs``, the first operand of the equation."""
        equation = _check_equation(merge_param("einsum_str", self.einsum_str, einsum_str))
        kernel = self.param("kernel", self.kernel_init, self.shape, self.param_dtype)
        bias = None
        if self.use_bias:
            bias_shape, broadcast_shape = self._get_bias_shape(equation, inputs, kernel)
            bias = self.param("bias", self.bias_init, bias_shape, self.param_dtype)
        inputs, kernel, bias = self.promote_dtype(inputs, kernel, bias, dtype=self.dtype)
        y = jnp.einsum(
            equation,
            inputs,
            kernel,
            precision=self.precision,
            preferred_element_type=self.preferred_element_type,
        )
        if bias is not None:
            y += jnp.reshape(bias, broadcast_shape)
        return y

    def _get_bias_shape(
        self, einsum_str: str, lhs: Array, rhs: Array
    ) -> tuple[list[int], list[int]]:
        """The shape of the bias, and the one that broadcasts to the result."""
        # The parser names the axes that an ellipsis stands for.
        operands, result, _ = opt_einsum.parser.parse_einsum_input((einsum_str, lhs, rhs))
        letters = operands.split(",")[1]
        assert len(set(letters)) == len(self.shape), f"'{letters}' does not fit {self.shape}"
        sizes = {letter: self.shape[letters.rindex(letter)] for letter in letters}
        bias_shape = [sizes[letter] for letter in result if letter in sizes]
        return bias_shape, [sizes.get(letter, 1) for letter in result]


def _check_equation(equation: str) -> str:
    equation = equation.replace(" ", "")
    if "->" not in equation:
        raise ValueError(
            f'`einsum_str` equation must be explicit and include "->". Found: {equation}'
        )
    if equation.count(",") != 1:
        raise ValueError(
            "`einsum_str` equation must have exactly two operands and therefore, exactly one comma "
            f"character, instead of {equation.count(',')}"
        )
    return equation
