"""Batch normalisation (flax 0.12.8, linen/normalization.py)."""

from typing import Any

import jax
import jax.numpy as jnp
from flax.typing import Dtype, Initializer
from jax.nn import initializers

from nnx_migrate.linen.layers.norm_parameters import normalize_with_fields, statistics
from nnx_migrate.linen.module import Module, compact, merge_param, nowrap
from nnx_migrate.numerics.norms import positive_axes


class BatchNorm(Module):
    """Normalise by the statistics of the batch, or by their running averages.

    Variables: ``mean`` and ``var`` of collection ``batch_stats``, parameters ``scale`` and ``bias``; all have
    the axes ``axis``. ``use_running_average`` is a field or an argument of the call, not both. While variables
    are made, the averages stay what they are and nothing is averaged over ``axis_name``.
    """

    use_running_average: bool | None = None
    axis: int = -1
    momentum: float = 0.99
    epsilon: float = 1e-5
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    use_bias: bool = True
    use_scale: bool = True
    bias_init: Initializer = initializers.zeros
    scale_init: Initializer = initializers.ones
    axis_name: str | None = None
    axis_index_groups: Any = None
    use_fast_variance: bool = True
    force_float32_reductions: bool = True

    @compact
    def __call__(
        self, x: Any, use_running_average: bool | None = None, *, mask: jax.Array | None = None
    ) -> Any:
        """Normalise ``x`` of any shape; positions where ``mask`` is False do not count."""
        running = merge_param("use_running_average", self.use_running_average, use_running_average)
        feature_axes = positive_axes(x.ndim, self.axis)
        reduction_axes = tuple(axis for axis in range(x.ndim) if axis not in feature_axes)
        shape = [x.shape[axis] for axis in feature_axes]
        dtype = jnp.float32 if self.force_float32_reductions else self.param_dtype
        average_mean = self.variable("batch_stats", "mean", lambda s: jnp.zeros(s, dtype), shape)
        average_var = self.variable("batch_stats", "var", lambda s: jnp.ones(s, dtype), shape)
        if running:
            mean, var = average_mean.value, average_var.value
            if not self.force_float32_reductions:
                mean = jnp.asarray(mean, self.param_dtype)
                var = jnp.asarray(var, self.param_dtype)
        else:
            initializing = self.is_initializing()
            axis_name = None if initializing else self.axis_name
            mean, var = statistics(self, x, reduction_axes, mask, axis_name=axis_name)
            if not initializing:
                self._move(average_mean, mean)
                self._move(average_var, var)
        return normalize_with_fields(self, x, mean, var, reduction_axes, feature_axes)

    @nowrap
    def _move(self, average: Any, value: Any) -> None:
        """Let a running average follow the value of a batch."""
        average.value = self.momentum * average.value + (1 - self.momentum) * value
