"""Statistics and rescaling of normalisation layers (flax 0.12.8, linen/normalization.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nnx_migrate.numerics.dtypes import canonicalize_dtype

Axes = int | Sequence[int]

_pmean: Any = lax.pmean


def positive_axes(rank: int, axes: Any) -> tuple[int, ...]:
    """``axes`` as distinct non-negative positions, in Linen's order."""
    sequence = axes if isinstance(axes, Iterable) else (axes,)
    return tuple({rank + axis if axis < 0 else axis for axis in sequence})


def squared_magnitude(x: jax.Array) -> jax.Array:
    """``|x|**2``, real also where ``x`` is complex."""
    if jnp.iscomplexobj(x):
        return lax.square(lax.real(x)) + lax.square(lax.imag(x))
    return lax.square(x)


def mean_and_variance(
    x: Any,
    axes: Any,
    dtype: Any,
    axis_name: str | None = None,
    axis_index_groups: Any = None,
    use_mean: bool = True,
    use_fast_variance: bool = True,
    mask: Any = None,
    force_float32_reductions: bool = True,
) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of ``x`` over ``axes``, which the results lack.

    Args:
      dtype: computed in at least this one; None is that of ``x``.
      axis_name, axis_index_groups: also average over this mapped axis, or groups of it.
      use_mean: False gives a mean of 0 and the mean square as variance.
      use_fast_variance: ``E[x^2] - E[x]^2`` in one pass, instead of two passes.
      mask: of a shape that broadcasts to ``x``; only positions where it is True count.
      force_float32_reductions: compute in at least float32.
    """
    dtype = jnp.result_type(x) if dtype is None else dtype
    if force_float32_reductions:
        dtype = jnp.promote_types(dtype, jnp.float32)
    x = x.astype(dtype) if isinstance(x, jax.Array) else jnp.asarray(x, dtype)
    axes_to_reduce = positive_axes(x.ndim, axes)

    def means(mask: Any, *xs: jax.Array) -> Sequence[jax.Array]:
        where = None if mask is None else jnp.asarray(mask, dtype=bool)
        local = [one.mean(axes_to_reduce, where=where) for one in xs]
        if axis_name is None:
            return local
        if len(local) == 1:
            return [_pmean(local[0], axis_name, axis_index_groups=axis_index_groups)]
        # One collective for all of them.
        means_of_all = jnp.stack(local, axis=0)
        common = _pmean(means_of_all, axis_name, axis_index_groups=axis_index_groups)
        return [common[i] for i in range(len(local))]

    if not use_mean:
        (var,) = means(mask, squared_magnitude(x))
        return jnp.zeros_like(var), var
    if use_fast_variance:
        mean, mean_of_squares = means(mask, x, squared_magnitude(x))
        # Rounding can make the difference negative.
        return mean, jnp.maximum(0.0, mean_of_squares - squared_magnitude(mean))
    (mean,) = means(mask, x)
    (var,) = means(mask, squared_magnitude(x - jnp.expand_dims(mean, axes_to_reduce)))
    return mean, var


def feature_shapes(
    shape: Sequence[int], feature_axes: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Shape of a scale or bias, and the same with ones so that it broadcasts to ``shape``."""
    broadcast = [1] * len(shape)
    for axis in feature_axes:
        broadcast[axis] = shape[axis]
    return [shape[axis] for axis in feature_axes], broadcast


def normalize_and_scale(
    x: jax.Array,
    mean: jax.Array,
    var: jax.Array,
    reduction_axes: Any,
    *,
    epsilon: float,
    dtype: Any,
    scale: Callable[[], jax.Array] | None,
    bias: Callable[[], jax.Array] | None,
) -> jax.Array:
    """``(x - mean) / sqrt(var + epsilon) * scale + bias`` in the dtype that Linen returns.

    Args:
      mean, var: without ``reduction_axes``.
      scale, bias: give arrays that broadcast to ``x``. Each is asked for where it is used, which is
        where Linen makes it.
    """
    axes_to_reduce = positive_axes(x.ndim, reduction_axes)
    mean = jnp.expand_dims(mean, axes_to_reduce)
    var = jnp.expand_dims(var, axes_to_reduce)
    y = x - mean
    factor = lax.rsqrt(var + epsilon)
    operands: list[Any] = [x]
    if scale is not None:
        weight = scale()
        factor *= weight
        operands.append(weight)
    y *= factor
    if bias is not None:
        offset = bias()
        y += offset
        operands.append(offset)
    return jnp.asarray(y, canonicalize_dtype(*operands, dtype=dtype))


def l2_normalize(x: jax.Array, axis: Any = None, eps: float = 1e-12) -> jax.Array:
    """``x`` divided by its L2 norm over ``axis`` (None: over all axes)."""
    return x * lax.rsqrt((x * x).sum(axis=axis, keepdims=True) + eps)


def largest_singular_value(
    matrix: jax.Array, u: jax.Array, n_steps: int, epsilon: float
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """``(u, v, sigma)`` after ``n_steps`` (one at least) of power iteration from ``u``.

    Args:
      matrix: ``(rows, columns)``.
      u: ``(1, columns)``; v is ``(1, rows)`` and sigma a scalar. No gradient flows through u and v.
    """
    for _ in range(n_steps):
        v = l2_normalize(jnp.matmul(u, matrix.transpose([1, 0])), eps=epsilon)
        u = l2_normalize(jnp.matmul(v, matrix), eps=epsilon)
    u, v = lax.stop_gradient(u), lax.stop_gradient(v)
    return u, v, jnp.matmul(jnp.matmul(v, matrix), jnp.transpose(u))[0, 0]
