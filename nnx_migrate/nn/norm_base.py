"""What all norms share: statistics in float32, one cast at the end, Linen's program.

Behaviour after flax 0.12.8, linen/normalization.py; same in 0.12.12.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

from .dtypes import canonicalize_dtype
from .variables import param

Axes = int | Sequence[int]

_pmean: Any = lax.pmean


def positive_axes(rank: int, axes: Axes) -> tuple[int, ...]:
    """``axes`` as distinct non-negative positions, in Linen's order."""
    listed = axes if isinstance(axes, Iterable) else (axes,)
    return tuple({rank + axis if axis < 0 else axis for axis in listed})


def _squared(x: jax.Array) -> jax.Array:
    if jnp.iscomplexobj(x):
        return lax.square(lax.real(x)) + lax.square(lax.imag(x))
    return lax.square(x)


class Norm(nnx.Module):
    """Fields and arithmetic that all norms share; ``in_features`` sizes scale and bias."""

    epsilon: float
    dtype: Any
    param_dtype: Any
    use_bias: bool
    use_scale: bool
    axis_name: str | None
    axis_index_groups: Any
    use_fast_variance: bool
    force_float32_reductions: bool

    def __init__(
        self,
        in_features: int | Sequence[int],
        rngs: nnx.Rngs,
        *,
        bias_init: Any,
        scale_init: Any,
        **fields: Any,
    ) -> None:
        """Keep ``fields`` as attributes and create ``scale`` and ``bias``."""
        shape = (in_features,) if isinstance(in_features, int) else tuple(in_features)
        self.feature_shape = shape
        for name, value in fields.items():
            setattr(self, name, value)
        self.scale = nnx.data(None)
        self.bias = nnx.data(None)
        if self.use_scale:
            self.scale = param(rngs, scale_init, shape, self.param_dtype)
        if self.use_bias:
            self.bias = param(rngs, bias_init, shape, self.param_dtype)

    def _means(self, axes: tuple[int, ...], mask: Any, *xs: jax.Array) -> list[jax.Array]:
        """Mean of each of ``xs`` over ``axes`` and, in one collective, over ``axis_name``."""
        where = None if mask is None else jnp.asarray(mask, dtype=bool)
        means = [x.mean(axes, where=where) for x in xs]
        if self.axis_name is None:
            return means
        groups = self.axis_index_groups
        if len(means) == 1:
            return [_pmean(means[0], self.axis_name, axis_index_groups=groups)]
        stacked = jnp.stack(means, axis=0)
        reduced = _pmean(stacked, self.axis_name, axis_index_groups=groups)
        return [reduced[i] for i in range(len(means))]

    def statistics(
        self, x: jax.Array, axes: Axes, mask: Any, *, use_mean: bool = True
    ) -> tuple[jax.Array, jax.Array]:
        """Mean and variance of ``x`` over ``axes``; the mean is 0 without ``use_mean``."""
        dtype = jnp.result_type(x) if self.dtype is None else self.dtype
        if self.force_float32_reductions:
            dtype = jnp.promote_types(dtype, jnp.float32)
        x = x.astype(dtype) if isinstance(x, jax.Array) else jnp.asarray(x, dtype)
        reduced = positive_axes(x.ndim, axes)
        if not use_mean:
            (var,) = self._means(reduced, mask, _squared(x))
            return jnp.zeros_like(var), var
        if self.use_fast_variance:
            mean, mean_of_squares = self._means(reduced, mask, x, _squared(x))
            # Rounding can make the difference negative.
            return mean, jnp.maximum(0.0, mean_of_squares - _squared(mean))
        (mean,) = self._means(reduced, mask, x)
        (var,) = self._means(reduced, mask, _squared(x - jnp.expand_dims(mean, reduced)))
        return mean, var

    def _feature_array(self, value: Any, shape: Sequence[int]) -> jax.Array:
        array = value[...].reshape(shape)
        return array if self.force_float32_reductions else jnp.asarray(array, self.param_dtype)

    def normalized(
        self,
        x: jax.Array,
        mean: jax.Array,
        var: jax.Array,
        reduction_axes: Axes,
        feature_axes: Axes,
    ) -> jax.Array:
        """``(x - mean) / sqrt(var + epsilon) * scale + bias`` in the dtype Linen returns."""
        reduction_axes = positive_axes(x.ndim, reduction_axes)
        shape = [1] * x.ndim
        for axis in positive_axes(x.ndim, feature_axes):
            shape[axis] = x.shape[axis]
        operands: list[Any] = [x]
        mean = jnp.expand_dims(mean, reduction_axes)
        var = jnp.expand_dims(var, reduction_axes)
        y = x - mean
        factor = lax.rsqrt(var + self.epsilon)
        if self.use_scale:
            scale = self._feature_array(self.scale, shape)
            factor *= scale
            operands.append(scale)
        y *= factor
        if self.use_bias:
            bias = self._feature_array(self.bias, shape)
            y += bias
            operands.append(bias)
        return jnp.asarray(y, canonicalize_dtype(*operands, dtype=self.dtype))
