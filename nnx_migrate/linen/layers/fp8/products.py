"""Products of quantised operands and their gradients (flax 0.12.8, linen/fp8_ops.py)."""

import warnings
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import custom_jvp, custom_vjp, lax

from nnx_migrate.linen.layers.fp8.meta_dtype import float32_of
from nnx_migrate.linen.layers.fp8.quantization import (
    dequantize,
    in_q,
    out_dq,
    quantize,
    update_fp8_meta,
)


def dot_general_transpose_lhs(
    g: Any,
    x: Any,
    y: Any,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: Any,
    swap_ans: bool = False,
) -> Any:
    """The gradient for ``x`` of ``dot_general(x, y)``, from that of the result.

    Args:
      g: gradient of the result.
      x: only its number of axes is read.
      swap_ans: the result is that of ``dot_general(y, x)``.
    """
    (x_contracted, y_contracted), (x_batch, y_batch) = dimension_numbers
    x_free = [axis for axis in range(x.ndim) if axis not in {*x_contracted, *x_batch}]
    y_free = [axis for axis in range(np.ndim(y)) if axis not in {*y_contracted, *y_batch}]
    # Axes of the result: first the batch, then what is kept of the left and of the right side.
    n_batch, offset = len(x_batch), 0 if swap_ans else len(x_free)
    answer_y = range(n_batch + offset, n_batch + offset + len(y_free))
    dims = ((answer_y, y_free), (range(n_batch), y_batch))
    by_y = list(np.take(x_contracted, np.argsort(y_contracted)))
    out_axes = np.argsort(list(x_batch) + x_free + by_y)
    product = lax.dot_general(
        g, y, dims, precision=precision, preferred_element_type=preferred_element_type
    )
    return lax.transpose(product, tuple(out_axes))


def dot_general_transpose_rhs(
    g: Any,
    x: Any,
    y: Any,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    """The gradient for ``y`` of ``dot_general(x, y)``, from that of the result."""
    contracted, batch = dimension_numbers
    return dot_general_transpose_lhs(
        g,
        y,
        x,
        dimension_numbers=(contracted[::-1], batch[::-1]),
        precision=precision,
        preferred_element_type=preferred_element_type,
        swap_ans=True,
    )


@partial(custom_vjp, nondiff_argnums=(8, 9))
def quantized_dot(
    lhs: Any,
    q_lhs: Any,
    lhs_scale: Any,
    rhs: Any,
    q_rhs: Any,
    rhs_scale: Any,
    out_grad_scale: Any,
    out_grad_amax_history: Any,
    dimension_numbers: Any,
    preferred_element_type: Any = None,
) -> Any:
    """``dot_general`` of the quantised operands; gradients go to ``lhs`` and ``rhs``.

    Args:
      lhs_scale, rhs_scale: of this step.
      out_grad_scale, out_grad_amax_history: of the step before; their "gradients" are the new ones.
    """
    return lax.dot_general(
        q_lhs,
        q_rhs,
        dimension_numbers,
        preferred_element_type=preferred_element_type,
        precision=lax.Precision.DEFAULT,
    )


def quantized_dot_fwd(
    lhs: Any,
    q_lhs: Any,
    lhs_scale: Any,
    rhs: Any,
    q_rhs: Any,
    rhs_scale: Any,
    out_grad_scale: Any,
    out_grad_amax_history: Any,
    dimension_numbers: Any,
    preferred_element_type: Any,
) -> tuple[Any, Any]:
    """Forward rule of :func:`quantized_dot`."""
    out = lax.dot_general(
        q_lhs,
        q_rhs,
        dimension_numbers,
        preferred_element_type=preferred_element_type,
        precision=lax.Precision.DEFAULT,
    )
    operands = (lhs, q_lhs, lhs_scale, rhs, q_rhs, rhs_scale)
    return out, (*operands, out_grad_scale, out_grad_amax_history)


def quantized_dot_bwd(
    dimension_numbers: Any, preferred_element_type: Any, res: Any, g: Any
) -> tuple[Any, ...]:
    """Backward rule of :func:`quantized_dot`: the gradient is quantised, too."""
    lhs, q_lhs, lhs_scale, rhs, q_rhs, rhs_scale, scale, amax_history = res
    new_scale, new_history = update_fp8_meta(g, jnp.float8_e5m2, scale, amax_history)
    q_g = quantize(g, jnp.float8_e5m2, float32_of(new_scale), preferred_element_type)
    options = {
        "dimension_numbers": dimension_numbers,
        "precision": lax.Precision.HIGHEST,
        "preferred_element_type": preferred_element_type,
    }
    lhs_grad = dot_general_transpose_lhs(q_g, lhs, q_rhs, **options)
    scales = float32_of(rhs_scale) * float32_of(new_scale)
    lhs_grad = dequantize(lhs_grad, preferred_element_type, scales)
    rhs_grad = dot_general_transpose_rhs(q_g, q_lhs, rhs, **options)
    scales = float32_of(lhs_scale) * float32_of(new_scale)
    rhs_grad = dequantize(rhs_grad, preferred_element_type, scales)
    return lhs_grad, None, None, rhs_grad, None, None, new_scale, new_history


quantized_dot.defvjp(quantized_dot_fwd, quantized_dot_bwd)


def fp8_scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    grad_scale: Any = None,
    lhs_amax_history: Any = None,
    rhs_amax_history: Any = None,
    grad_amax_history: Any = None,
    quantize_compute_type: Any = jnp.float32,
) -> Any:
    """``dot_general`` with both operands, and in the backward pass the gradient, in 8 bits.

    Args:
      precision: ignored, with a warning.
      preferred_element_type: dtype of the result.
      quantize_compute_type: dtype that operands are scaled in.
    """
    if precision is not None:
        warnings.warn(
            'The function fp8_scaled_dot_general will set the "precision" and disregard any '
            'provided "precision" argument.',
            stacklevel=2,
        )
    to_fp8 = partial(in_q, quantize_compute_type, jnp.float8_e4m3fn)
    q_lhs, new_lhs_scale = to_fp8(lhs, lhs_scale, lhs_amax_history)
    q_rhs, new_rhs_scale = to_fp8(rhs, rhs_scale, rhs_amax_history)
    y = quantized_dot(
        lhs,
        q_lhs,
        new_lhs_scale,
        rhs,
        q_rhs,
        new_rhs_scale,
        grad_scale,
        grad_amax_history,
        dimension_numbers,
        preferred_element_type,
    )
    return out_dq(preferred_element_type, new_lhs_scale, new_rhs_scale, y)


@partial(custom_jvp, nondiff_argnums=(2, 3, 4))
def dot_general_with_precision(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """``dot_general`` at default precision, with gradients at the highest.

    Args:
      precision, preferred_element_type: ignored, with a warning.
    """
    if precision is not None or preferred_element_type is not None:
        warnings.warn(
            "The function dot_general_with_precision will set the precision/preferred_element_type "
            "and disregard any provided values.",
            stacklevel=2,
        )
    return lax.dot_general(lhs, rhs, dimension_numbers, precision=lax.Precision.DEFAULT)


@dot_general_with_precision.defjvp
def dot_general_with_precision_jvp(
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: Any,
    primals: Any,
    tangents: Any,
) -> tuple[Any, Any]:
    """Forward-mode rule of :func:`dot_general_with_precision`."""
    lhs, rhs = primals
    lhs_dot, rhs_dot = tangents
    out = lax.dot_general(lhs, rhs, dimension_numbers, precision=lax.Precision.DEFAULT)
    exact = partial(
        lax.dot_general, dimension_numbers=dimension_numbers, precision=lax.Precision.HIGHEST
    )
    return out, exact(lhs_dot, rhs) + exact(lhs, rhs_dot)
