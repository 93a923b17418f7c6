"""What all norms share: statistics in float32, one cast at the end, Linen's program.

Behaviour after flax 0.12.8, linen/normalization.py; same in 0.12.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from nnx_migrate.nn.variables.variables import param
from nnx_migrate.numerics.norms import (
    Axes,
    feature_shapes,
    mean_and_variance,
    normalize_and_scale,
    positive_axes,
)


def feature_shape(in_features: int | Sequence[int]) -> tuple[int, ...]:
    """The shape of scale, bias and running statistics."""
    return (in_features,) if isinstance(in_features, int) else tuple(in_features)


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
        shape = feature_shape(in_features)
        for name, value in fields.items():
            setattr(self, name, value)
        self.scale = nnx.data(None)
        self.bias = nnx.data(None)
        if self.use_scale:
            self.scale = param(rngs, scale_init, shape, self.param_dtype)
        if self.use_bias:
            self.bias = param(rngs, bias_init, shape, self.param_dtype)

    def statistics(
        self, x: jax.Array, axes: Axes, mask: Any, *, use_mean: bool = True
    ) -> tuple[jax.Array, jax.Array]:
        """Mean and variance of ``x`` over ``axes``; the mean is 0 without ``use_mean``."""
        return mean_and_variance(
            x,
            axes,
            self.dtype,
            self.mapped_axis(),
            self.axis_index_groups,
            use_mean,
            self.use_fast_variance,
            mask,
            self.force_float32_reductions,
        )

    def mapped_axis(self) -> str | None:
        """The mapped axis that statistics are averaged over."""
        return self.axis_name

    def _feature_array(self, value: Any, shape: Sequence[int]) -> jax.Array:
        array = value[...].reshape(shape)
        return array if self.force_float32_reductions else jnp.asarray(array, self.param_dtype)

    def normalize(
        self,
        x: jax.Array,
        mean: jax.Array,
        var: jax.Array,
        reduction_axes: Axes,
        feature_axes: Axes,
    ) -> jax.Array:
        """``(x - mean) / sqrt(var + epsilon) * scale + bias`` in the dtype Linen returns."""
        _, shape = feature_shapes(x.shape, positive_axes(x.ndim, feature_axes))
        return normalize_and_scale(
            x,
            mean,
            var,
            reduction_axes,
            epsilon=self.epsilon,
            dtype=self.dtype,
            scale=partial(self._feature_array, self.scale, shape) if self.use_scale else None,
            bias=partial(self._feature_array, self.bias, shape) if self.use_bias else None,
        )
