"""Quantisation with scales that follow the largest values seen (flax 0.12.8, linen/fp8_ops.py).

A scale is shape (1,); a history of largest absolute values is (length,), the latest at index 0. Both are
float32, or :data:`fm32`. Their "gradients" are their new values.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import custom_vjp, lax

from nnx_migrate.linen.layers.fp8.meta_dtype import float32_of, fm32, fp32_max_grad

_convert: Any = lax.convert_element_type
_finfo: Any = jnp.finfo
_FP8 = (jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3fnuz, jnp.float8_e5m2fnuz)


def get_fp8_max(fp8_dtype: Any, out_dtype: Any) -> Any:
    """The largest value of an 8-bit dtype, in ``out_dtype``."""
    assert fp8_dtype in _FP8, f"expected one of {_FP8}, found {fp8_dtype}"
    return _finfo(fp8_dtype).max.astype(out_dtype)


def quantize(x: Any, q_dtype: Any, scale: Any, compute_dtype: Any) -> Any:
    """``x / scale``, clipped, in ``q_dtype``."""
    largest = get_fp8_max(q_dtype, compute_dtype)
    scaled = x / jnp.broadcast_to(scale.astype(compute_dtype), x.shape)
    return jnp.clip(scaled, -largest, largest).astype(q_dtype)


def dequantize(x: Any, dq_dtype: Any, scale: Any) -> Any:
    """``x * scale`` in ``dq_dtype``."""
    return x.astype(dq_dtype) * jnp.broadcast_to(scale.astype(dq_dtype), x.shape)


def qdq(x: Any, q_dtype: Any, scale: Any, compute_dtype: Any) -> Any:
    """``x`` rounded to what ``q_dtype`` can hold at this scale."""
    return dequantize(quantize(x, q_dtype, scale, compute_dtype), x.dtype, scale)


def compute_scale(amax: Any, scale: Any, fp8_max: Any, margin: int = 0) -> Any:
    """The scale at which ``amax`` is the largest value of the 8-bit dtype.

    Where ``amax`` is 0 or not finite, ``scale`` stays.
    """
    inverse = 1.0 / scale
    new_scale = (fp8_max / amax) / (2**margin)
    new_scale = jnp.where(amax > 0.0, new_scale, inverse)
    new_scale = jnp.where(jnp.isfinite(amax), new_scale, inverse)
    return 1.0 / new_scale


def compute_amax_history(x: Any, amax_history: Any) -> Any:
    """The history with the largest absolute value of ``x`` added and the oldest dropped."""
    amax = jnp.max(jnp.abs(x)).astype(amax_history.dtype)
    return jnp.roll(amax_history, shift=-1, axis=0).at[0].set(amax)


def update_fp8_meta(x: Any, q_dtype: Any, scale: Any, amax_history: Any) -> tuple[Any, Any]:
    """The scale that the history asks for, and the history with ``x``."""
    is_extended = scale.dtype == fm32 and amax_history.dtype == fm32
    if is_extended:
        amax_history = _convert(amax_history, jnp.float32)
        scale = _convert(scale, jnp.float32)
    largest = get_fp8_max(q_dtype, jnp.float32)
    amax = jnp.max(amax_history, axis=0)
    new_scale = compute_scale(amax, scale, largest)
    new_history = compute_amax_history(x, amax_history)
    if is_extended:
        new_history = _convert(new_history, fp32_max_grad)
        new_scale = _convert(new_scale, fp32_max_grad)
    return new_scale, new_history


def quantize_dequantize_update(
    x: Any, q_dtype: Any, scale: Any, amax_history: Any, compute_dtype: Any
) -> tuple[Any, Any, Any]:
    """``x`` rounded at the new scale, the new scale and the new history."""
    new_scale, new_history = update_fp8_meta(x, q_dtype, scale, amax_history)
    return qdq(x, q_dtype, float32_of(new_scale), compute_dtype), new_scale, new_history


@partial(custom_vjp, nondiff_argnums=(0, 1))
def in_qdq(compute_dtype: Any, q_dtype: Any, inp: Any, scale: Any, amax_history: Any) -> Any:
    """``inp`` rounded; its gradient passes, and those of scale and history are their new values."""
    return quantize_dequantize_update(inp, q_dtype, scale, amax_history, compute_dtype)[0]


def in_qdq_fwd(
    compute_dtype: Any, q_dtype: Any, inp: Any, scale: Any, amax_history: Any
) -> tuple[Any, Any]:
    """Forward rule of :func:`in_qdq`."""
    rounded, *new = quantize_dequantize_update(inp, q_dtype, scale, amax_history, compute_dtype)
    return rounded, tuple(new)


def in_qdq_bwd(compute_dtype: Any, q_dtype: Any, res: Any, g: Any) -> tuple[Any, Any, Any]:
    """Backward rule of :func:`in_qdq`."""
    return (g, *res)


in_qdq.defvjp(in_qdq_fwd, in_qdq_bwd)


@partial(custom_vjp, nondiff_argnums=(0, 1))
def out_qdq(compute_dtype: Any, q_dtype: Any, out: Any, scale: Any, amax_history: Any) -> Any:
    """``out`` as it is; its gradient is rounded, and updates scale and history."""
    return out


def out_qdq_fwd(
    compute_dtype: Any, q_dtype: Any, out: Any, scale: Any, amax_history: Any
) -> tuple[Any, Any]:
    """Forward rule of :func:`out_qdq`."""
    return out, (scale, amax_history)


def out_qdq_bwd(compute_dtype: Any, q_dtype: Any, res: Any, g: Any) -> tuple[Any, Any, Any]:
    """Backward rule of :func:`out_qdq`."""
    scale, amax_history = res
    return quantize_dequantize_update(g, q_dtype, scale, amax_history, compute_dtype)


out_qdq.defvjp(out_qdq_fwd, out_qdq_bwd)


@partial(custom_vjp, nondiff_argnums=(0, 1))
def in_q(
    compute_dtype: Any, q_dtype: Any, inp: Any, scale: Any, amax_history: Any
) -> tuple[Any, Any]:
    """``inp`` in ``q_dtype`` and its new scale; no gradient for ``inp``."""
    new_scale, _ = update_fp8_meta(inp, q_dtype, scale, amax_history)
    return quantize(inp, q_dtype, float32_of(new_scale), compute_dtype), new_scale


def in_q_fwd(
    compute_dtype: Any, q_dtype: Any, inp: Any, scale: Any, amax_history: Any
) -> tuple[Any, Any]:
    """Forward rule of :func:`in_q`."""
    new_scale, new_history = update_fp8_meta(inp, q_dtype, scale, amax_history)
    quantized = quantize(inp, q_dtype, float32_of(new_scale), compute_dtype)
    return (quantized, new_scale), (new_scale, new_history)


def in_q_bwd(compute_dtype: Any, q_dtype: Any, res: Any, _: Any) -> tuple[Any, Any, Any]:
    """Backward rule of :func:`in_q`: scale and history move, nothing flows on."""
    return (None, *res)


in_q.defvjp(in_q_fwd, in_q_bwd)


@partial(custom_vjp, nondiff_argnums=(0,))
def out_dq(dq_type: Any, lhs_scale: Any, rhs_scale: Any, out: Any) -> Any:
    """A product of quantised operands, with their scales, in ``dq_type``."""
    return dequantize(out, dq_type, float32_of(lhs_scale) * float32_of(rhs_scale))


def out_dq_fwd(dq_type: Any, lhs_scale: Any, rhs_scale: Any, out: Any) -> tuple[Any, None]:
    """Forward rule of :func:`out_dq`."""
    return out_dq(dq_type, lhs_scale, rhs_scale, out), None


def out_dq_bwd(dq_type: Any, _: Any, g: Any) -> tuple[None, None, Any]:
    """Backward rule of :func:`out_dq`: the gradient passes."""
    return None, None, g


out_dq.defvjp(out_dq_fwd, out_dq_bwd)
