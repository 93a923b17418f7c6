"""Normalisation of each position by itself (flax 0.12.8, linen/normalization.py)."""

from typing import Any

import jax
import jax.numpy as jnp
from flax.typing import Axes, Dtype, Initializer
from jax.nn import initializers

from nnx_migrate.linen.layers.norm_parameters import normalize, normalize_with_fields, statistics
from nnx_migrate.linen.module import Module, compact


class LayerNorm(Module):
    """Centre and scale by the statistics over ``reduction_axes``.

    Variables: ``scale`` and ``bias`` with the axes ``feature_axes``, of ``param_dtype``. The result has
    ``dtype`` (None: the common one of input and parameters); statistics are at least float32 unless
    ``force_float32_reductions`` is False.
    """

    epsilon: float = 1e-6
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    use_bias: bool = True
    use_scale: bool = True
    bias_init: Initializer = initializers.zeros
    scale_init: Initializer = initializers.ones
    reduction_axes: Axes = -1
    feature_axes: Axes = -1
    axis_name: str | None = None
    axis_index_groups: Any = None
    use_fast_variance: bool = True
    force_float32_reductions: bool = True

    @compact
    def __call__(self, x: Any, *, mask: jax.Array | None = None) -> Any:
        """Normalise ``x`` of any shape; positions where ``mask`` is False do not count."""
        mean, var = statistics(self, x, self.reduction_axes, mask)
        return normalize_with_fields(self, x, mean, var, self.reduction_axes, self.feature_axes)


class RMSNorm(Module):
    """As :class:`LayerNorm`, by the mean square alone: no centring, no ``bias``."""

    epsilon: float = 1e-6
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    use_scale: bool = True
    scale_init: Initializer = initializers.ones
    reduction_axes: Axes = -1
    feature_axes: Axes = -1
    axis_name: str | None = None
    axis_index_groups: Any = None
    use_fast_variance: bool = True
    force_float32_reductions: bool = True

    @compact
    def __call__(self, x: Any, *, mask: jax.Array | None = None) -> Any:
        """Normalise ``x`` of any shape; positions where ``mask`` is False do not count."""
        mean, var = statistics(self, x, self.reduction_axes, mask, use_mean=False)
        return normalize(
            self,
            x,
            mean,
            var,
            self.reduction_axes,
            self.feature_axes,
            self.dtype,
            self.param_dtype,
            self.epsilon,
            use_bias=False,
            use_scale=self.use_scale,
            bias_init=initializers.zeros,
            scale_init=self.scale_init,
            force_float32_reductions=self.force_float32_reductions,
        )
