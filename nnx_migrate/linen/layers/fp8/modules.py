"""The modules that keep scales and histories (flax 0.12.8, linen/fp8_ops.py)."""

import warnings
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax, random
from jax.nn import initializers

from nnx_migrate.linen.layers.fp8.products import (
    dot_general_with_precision,
    fp8_scaled_dot_general,
)
from nnx_migrate.linen.layers.fp8.quantization import in_qdq, out_qdq
from nnx_migrate.linen.module import Module, nowrap

# The collection of variables whose gradients are their new values.
OVERWRITE_WITH_GRADIENT = "_overwrite_with_gradient"

DType = Any


def parsed_dot_inputs(*args: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
    """Operands, dimension numbers and dtype of a ``dot_general`` call: the second operand's dtype."""
    assert len(args) == 3, f"expected lhs, rhs and dimension_numbers, found {len(args)} arguments"
    x, kernel, dimension_numbers = args
    return jnp.asarray(x, kernel.dtype), kernel, dimension_numbers, kernel.dtype


class Fp8DotGeneralBase(Module):
    """Variables of a product: ``{input,kernel,output_grad}_{amax_history,scale}``.

    Histories have shape (amax_history_length,), scales (1,); all are float32 and in the collection
    ``_overwrite_with_gradient``.
    """

    amax_history_length: int = 1024
    e4m3_dtype: DType = jnp.float8_e4m3fn
    e5m2_dtype: DType = jnp.float8_e5m2

    def setup(self) -> None:
        """Make histories of zeros and scales of one."""
        key = random.PRNGKey(0)
        history = (initializers.zeros, key, (self.amax_history_length,), jnp.float32)
        scale = (initializers.ones, key, (1,), jnp.float32)
        make = partial(self.variable, OVERWRITE_WITH_GRADIENT)
        self.input_amax_history = make("input_amax_history", *history)
        self.kernel_amax_history = make("kernel_amax_history", *history)
        self.output_grad_amax_history = make("output_grad_amax_history", *history)
        self.input_scale = make("input_scale", *scale)
        self.kernel_scale = make("kernel_scale", *scale)
        self.output_grad_scale = make("output_grad_scale", *scale)

    @nowrap
    def _scaled_dot_general(self, compute_dtype: Any) -> Any:
        """:func:`fp8_scaled_dot_general` with the variables of this module."""
        return partial(
            fp8_scaled_dot_general,
            lhs_scale=self.input_scale.value,
            rhs_scale=self.kernel_scale.value,
            grad_scale=self.output_grad_scale.value,
            lhs_amax_history=self.input_amax_history.value,
            rhs_amax_history=self.kernel_amax_history.value,
            grad_amax_history=self.output_grad_amax_history.value,
            quantize_compute_type=compute_dtype,
        )


class Fp8DotGeneralOp(Fp8DotGeneralBase):
    """``dot_general`` with operands rounded to 8 bits but multiplied as they come; flax is giving it up."""

    def __post_init__(self) -> None:
        """Warn of what flax is giving up."""
        super().__post_init__()
        if type(self) is Fp8DotGeneralOp:
            warnings.warn(
                "The Fp8DotGeneralOp is deprecated. Use Fp8DirectDotGeneralOp or Fp8Einsum instead.",
                DeprecationWarning,
                stacklevel=3,
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """``dot_general(lhs, rhs, dimension_numbers)``; other arguments are ignored."""
        x, kernel, dimension_numbers, dtype = parsed_dot_inputs(*args, **kwargs)
        history = self.input_amax_history.value
        x = in_qdq(dtype, self.e4m3_dtype, x, self.input_scale.value, history)
        history = self.kernel_amax_history.value
        kernel = in_qdq(dtype, self.e4m3_dtype, kernel, self.kernel_scale.value, history)
        y = dot_general_with_precision(x, kernel, dimension_numbers)
        scale, history = self.output_grad_scale.value, self.output_grad_amax_history.value
        return out_qdq(dtype, self.e5m2_dtype, y, scale, history)


class Fp8DirectDotGeneralOp(Fp8DotGeneralBase):
    """``dot_general`` of 8-bit operands."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """``dot_general(lhs, rhs, dimension_numbers)``; other arguments are ignored."""
        x, kernel, dimension_numbers, dtype = parsed_dot_inputs(*args, **kwargs)
        product = self._scaled_dot_general(dtype)
        return product(x, kernel, dimension_numbers, preferred_element_type=x.dtype)


class NANOOFp8DotGeneralOp(Fp8DotGeneralOp):
    """:class:`Fp8DotGeneralOp` with the 8-bit dtypes that have no negative zero."""

    e4m3_dtype: DType = jnp.float8_e4m3fnuz
    e5m2_dtype: DType = jnp.float8_e5m2fnuz


class Fp8Einsum(Fp8DotGeneralBase):
    """``jnp.einsum`` of 8-bit operands; the second is the weight and has the dtype to compute in."""

    def __call__(
        self,
        eqn: str,
        lhs: Any,
        rhs: Any,
        precision: lax.Precision | None = None,
        preferred_element_type: Any = None,
    ) -> Any:
        """``jnp.einsum(eqn, lhs, rhs)``."""
        return jnp.einsum(
            eqn,
            lhs.astype(rhs.dtype),
            rhs,
            precision=precision,
            preferred_element_type=preferred_element_type,
            _dot_general=self._scaled_dot_general(rhs.dtype),
        )


Fp8DotGeneral = Fp8DirectDotGeneralOp  # its older name
