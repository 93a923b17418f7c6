"""Normalisation layers with Linen's program: statistics in float32, one cast at the end.

The native layers with ``promote_dtype=keep_dtype`` give the same bits through another program
(``reshape`` where Linen has ``broadcast_in_dim``), only know one feature axis, and lack
``force_float32_reductions``. Behaviour after flax 0.12.8, linen/normalization.py; same in 0.12.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from nnx_migrate.nn.layers.norm_base import Norm, feature_shape
from nnx_migrate.nn.variables.state import is_initializing
from nnx_migrate.nn.variables.variables import mode
from nnx_migrate.numerics.norms import Axes, positive_axes


class LayerNorm(Norm):
    """``linen.LayerNorm``: ``scale`` and ``bias`` of shape ``in_features`` (a tuple for several
    ``feature_axes``, in ascending axis position); any input shape."""

    def __init__(
        self,
        epsilon: float = 1e-6,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_bias: bool = True,
        use_scale: bool = True,
        bias_init: Any = nnx.initializers.zeros,
        scale_init: Any = nnx.initializers.ones,
        reduction_axes: Axes = -1,
        feature_axes: Axes = -1,
        axis_name: str | None = None,
        axis_index_groups: Any = None,
        use_fast_variance: bool = True,
        force_float32_reductions: bool = True,
        *,
        in_features: int | Sequence[int],
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        super().__init__(
            in_features,
            rngs,
            epsilon=epsilon,
            dtype=dtype,
            param_dtype=param_dtype,
            use_bias=use_bias,
            use_scale=use_scale,
            bias_init=bias_init,
            scale_init=scale_init,
            axis_name=axis_name,
            axis_index_groups=axis_index_groups,
            use_fast_variance=use_fast_variance,
            force_float32_reductions=force_float32_reductions,
        )
        self.reduction_axes = reduction_axes
        self.feature_axes = feature_axes

    def __call__(self, x: jax.Array, *, mask: jax.Array | None = None) -> jax.Array:
        """Normalise ``x``; positions where ``mask`` is False do not count in the statistics."""
        mean, var = self.statistics(x, self.reduction_axes, mask)
        return self.normalize(x, mean, var, self.reduction_axes, self.feature_axes)


class RMSNorm(Norm):
    """``linen.RMSNorm``: as :class:`LayerNorm` without centring and without ``bias``."""

    def __init__(
        self,
        epsilon: float = 1e-6,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_scale: bool = True,
        scale_init: Any = nnx.initializers.ones,
        reduction_axes: Axes = -1,
        feature_axes: Axes = -1,
        axis_name: str | None = None,
        axis_index_groups: Any = None,
        use_fast_variance: bool = True,
        force_float32_reductions: bool = True,
        *,
        in_features: int | Sequence[int],
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        super().__init__(
            in_features,
            rngs,
            epsilon=epsilon,
            dtype=dtype,
            param_dtype=param_dtype,
            use_bias=False,
            use_scale=use_scale,
            bias_init=nnx.initializers.zeros,
            scale_init=scale_init,
            axis_name=axis_name,
            axis_index_groups=axis_index_groups,
            use_fast_variance=use_fast_variance,
            force_float32_reductions=force_float32_reductions,
        )
        self.reduction_axes = reduction_axes
        self.feature_axes = feature_axes

    def __call__(self, x: jax.Array, *, mask: jax.Array | None = None) -> jax.Array:
        """Normalise ``x``; positions where ``mask`` is False do not count in the statistics."""
        mean, var = self.statistics(x, self.reduction_axes, mask, use_mean=False)
        return self.normalize(x, mean, var, self.reduction_axes, self.feature_axes)


class InstanceNorm(Norm):
    """``linen.InstanceNorm``: statistics over all axes but the first and ``feature_axes``."""

    def __init__(
        self,
        epsilon: float = 1e-6,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_bias: bool = True,
        use_scale: bool = True,
        bias_init: Any = nnx.initializers.zeros,
        scale_init: Any = nnx.initializers.ones,
        feature_axes: Axes = -1,
        axis_name: str | None = None,
        axis_index_groups: Any = None,
        use_fast_variance: bool = True,
        force_float32_reductions: bool = True,
        *,
        in_features: int | Sequence[int],
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        super().__init__(
            in_features,
            rngs,
            epsilon=epsilon,
            dtype=dtype,
            param_dtype=param_dtype,
            use_bias=use_bias,
            use_scale=use_scale,
            bias_init=bias_init,
            scale_init=scale_init,
            axis_name=axis_name,
            axis_index_groups=axis_index_groups,
            use_fast_variance=use_fast_variance,
            force_float32_reductions=force_float32_reductions,
        )
        self.feature_axes = feature_axes

    def __call__(self, x: jax.Array, *, mask: jax.Array | None = None) -> jax.Array:
        """Normalise ``x``; positions where ``mask`` is False do not count in the statistics."""
        feature_axes = positive_axes(x.ndim, self.feature_axes)
        if 0 in feature_axes:
            raise ValueError(
                f"expected feature_axes without the leading batch axis, found {self.feature_axes}"
            )
        reduction_axes = [axis for axis in range(1, x.ndim) if axis not in feature_axes]
        mean, var = self.statistics(x, reduction_axes, mask)
        return self.normalize(x, mean, var, reduction_axes, feature_axes)


class GroupNorm(Norm):
    """``linen.GroupNorm``: statistics per example and per group of channels (the last axis).

    Raises:
      ValueError: not exactly one of ``num_groups`` and ``group_size`` is given, or the groups do
        not divide ``in_features``.
    """

    def __init__(
        self,
        num_groups: int | None = 32,
        group_size: int | None = None,
        epsilon: float = 1e-6,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_bias: bool = True,
        use_scale: bool = True,
        bias_init: Any = nnx.initializers.zeros,
        scale_init: Any = nnx.initializers.ones,
        reduction_axes: Axes | None = None,
        axis_name: str | None = None,
        axis_index_groups: Any = None,
        use_fast_variance: bool = True,
        force_float32_reductions: bool = True,
        *,
        in_features: int,
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        self.num_groups = _group_count(in_features, num_groups, group_size)
        self.group_size = in_features // self.num_groups
        super().__init__(
            in_features,
            rngs,
            epsilon=epsilon,
            dtype=dtype,
            param_dtype=param_dtype,
            use_bias=use_bias,
            use_scale=use_scale,
            bias_init=bias_init,
            scale_init=scale_init,
            axis_name=axis_name,
            axis_index_groups=axis_index_groups,
            use_fast_variance=use_fast_variance,
            force_float32_reductions=force_float32_reductions,
        )
        self.reduction_axes = reduction_axes

    def __call__(self, x: jax.Array, *, mask: jax.Array | None = None) -> jax.Array:
        """Normalise ``x``; positions where ``mask`` is False do not count in the statistics."""
        axes = [*range(1, x.ndim - 1), -1] if self.reduction_axes is None else self.reduction_axes
        reduction_axes = positive_axes(x.ndim, axes)
        if reduction_axes[-1] != x.ndim - 1:
            raise ValueError(f"expected reduction_axes to include the last axis, found {axes}")
        groups = (self.num_groups, self.group_size)
        if mask is not None:
            mask = mask.reshape(mask.shape[:-1] + groups)
        other_axes = list(reduction_axes[:-1])
        mean, var = self.statistics(x.reshape(x.shape[:-1] + groups), [*other_axes, -1], mask)
        mean = jnp.repeat(mean, self.group_size, axis=-1)
        var = jnp.repeat(var, self.group_size, axis=-1)
        return self.normalize(x, mean, var, other_axes, -1)


def _group_count(channels: int, num_groups: int | None, group_size: int | None) -> int:
    if (num_groups is None) == (group_size is None):
        raise ValueError(
            f"expected exactly one of num_groups and group_size, found num_groups={num_groups} and "
            f"group_size={group_size}; pass num_groups=None to use group_size"
        )
    if group_size is not None:
        if channels % group_size != 0:
            raise ValueError(f"group_size={group_size} does not divide in_features={channels}")
        return channels // group_size
    assert num_groups is not None
    if num_groups <= 0 or channels % num_groups != 0:
        raise ValueError(f"num_groups={num_groups} does not divide in_features={channels}")
    return num_groups


class BatchNorm(Norm):
    """``linen.BatchNorm``: ``mean`` and ``var`` are ``nnx.BatchStat``, updated in every call that
    does not use the running average (Linen: while ``batch_stats`` is mutable). What ``eval()`` and
    ``train()`` set counts where the call says nothing.

    Raises:
      ValueError: ``use_running_average`` is given neither or both here and in the call.
    """

    def __init__(
        self,
        use_running_average: bool | None = None,
        axis: Axes = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-5,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_bias: bool = True,
        use_scale: bool = True,
        bias_init: Any = nnx.initializers.zeros,
        scale_init: Any = nnx.initializers.ones,
        axis_name: str | None = None,
        axis_index_groups: Any = None,
        use_fast_variance: bool = True,
        force_float32_reductions: bool = True,
        *,
        in_features: int | Sequence[int],
        rngs: nnx.Rngs,
    ) -> None:
        """Take Linen's fields in Linen's order, then the sizes; see the class."""
        shape = feature_shape(in_features)
        stats_dtype = jnp.float32 if force_float32_reductions else param_dtype
        self.mean = nnx.BatchStat(jnp.zeros(shape, stats_dtype))  # Linen makes them first
        self.var = nnx.BatchStat(jnp.ones(shape, stats_dtype))
        super().__init__(
            in_features,
            rngs,
            epsilon=epsilon,
            dtype=dtype,
            param_dtype=param_dtype,
            use_bias=use_bias,
            use_scale=use_scale,
            bias_init=bias_init,
            scale_init=scale_init,
            axis_name=axis_name,
            axis_index_groups=axis_index_groups,
            use_fast_variance=use_fast_variance,
            force_float32_reductions=force_float32_reductions,
        )
        self.use_running_average = use_running_average
        self.is_fixed = use_running_average is not None
        self.axis = axis
        self.momentum = momentum

    def __call__(
        self,
        x: jax.Array,
        use_running_average: bool | None = None,
        *,
        mask: jax.Array | None = None,
    ) -> jax.Array:
        """Normalise ``x``; positions where ``mask`` is False do not count in the statistics."""
        running = mode(
            "use_running_average",
            self.use_running_average,
            use_running_average,
            is_fixed=self.is_fixed,
        )
        feature_axes = positive_axes(x.ndim, self.axis)
        reduction_axes = tuple(axis for axis in range(x.ndim) if axis not in feature_axes)
        if running:
            mean, var = self.mean[...], self.var[...]
            if not self.force_float32_reductions:
                mean = jnp.asarray(mean, self.param_dtype)
                var = jnp.asarray(var, self.param_dtype)
        else:
            mean, var = self.statistics(x, reduction_axes, mask)
            if not is_initializing():
                self.mean.set_value(self.momentum * self.mean[...] + (1 - self.momentum) * mean)
                self.var.set_value(self.momentum * self.var[...] + (1 - self.momentum) * var)
        return self.normalize(x, mean, var, reduction_axes, feature_axes)

    def mapped_axis(self) -> str | None:
        """None while Linen's ``init`` runs, which needs no mapped axis."""
        return None if is_initializing() else self.axis_name

    def set_view(self, use_running_average: bool | None = None) -> None:
        """Used by ``nnx.view``; ``train()`` and ``eval()`` set the same attribute."""
        if use_running_average is not None:
            self.use_running_average = use_running_average
