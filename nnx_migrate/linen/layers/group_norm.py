"""Normalisation of each example, per channel or group of channels (flax 0.12.8, linen/normalization.py)."""

from typing import Any

import jax
import jax.numpy as jnp
from flax.typing import Axes, Dtype, Initializer
from jax.nn import initializers

from nnx_migrate.linen.layers.norm_parameters import normalize_with_fields, statistics
from nnx_migrate.linen.module import Module, compact
from nnx_migrate.numerics.norms import positive_axes


class GroupNorm(Module):
    """Statistics per example and per group of channels, which are the last axis.

    Variables: ``scale`` and ``bias`` (channels,). Statistics are over ``reduction_axes`` (None: all but the
    first), which include the last.

    Raises:
      ValueError: ``reduction_axes`` lack the last axis, not exactly one of ``num_groups`` and ``group_size``
        is given, or the groups do not divide the channels.
    """

    num_groups: int | None = 32
    group_size: int | None = None
    epsilon: float = 1e-6
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    use_bias: bool = True
    use_scale: bool = True
    bias_init: Initializer = initializers.zeros
    scale_init: Initializer = initializers.ones
    reduction_axes: Axes | None = None
    axis_name: str | None = None
    axis_index_groups: Any = None
    use_fast_variance: bool = True
    force_float32_reductions: bool = True

    @compact
    def __call__(self, x: Any, *, mask: jax.Array | None = None) -> Any:
        """Normalise ``(batch, *spatial, channels)``; positions where ``mask`` is False do not count."""
        axes = [*range(1, x.ndim - 1), -1] if self.reduction_axes is None else self.reduction_axes
        reduction_axes = positive_axes(x.ndim, axes)
        if reduction_axes[-1] != x.ndim - 1:
            raise ValueError(
                "The reduction axes must include the final dimension, which holds the features; "
                f"found {axes}"
            )
        groups = _group_count(x.shape[-1], self.num_groups, self.group_size)
        size = x.shape[-1] // groups
        if mask is not None:
            mask = mask.reshape((*mask.shape[:-1], groups, size))
        grouped = x.reshape((*x.shape[:-1], groups, size))
        mean, var = statistics(self, grouped, [*reduction_axes[:-1], -1], mask)
        mean = jnp.repeat(mean, size, axis=-1)
        var = jnp.repeat(var, size, axis=-1)
        return normalize_with_fields(self, x, mean, var, reduction_axes[:-1], (-1,))


def _group_count(channels: int, num_groups: int | None, group_size: int | None) -> int:
    if (num_groups is None) == (group_size is None):
        raise ValueError(
            "Either `num_groups` or `group_size` should be specified, and the other be None: found "
            f"num_groups={num_groups} and group_size={group_size}"
        )
    if group_size is not None:
        if channels % group_size != 0:
            raise ValueError(
                f"Number of channels ({channels}) is not multiple of the group size ({group_size})."
            )
        num_groups = channels // group_size
    assert isinstance(num_groups, int)
    if num_groups <= 0 or channels % num_groups != 0:
        raise ValueError(
            f"Number of groups ({num_groups}) does not divide the number of channels ({channels})."
        )
    return num_groups


class InstanceNorm(Module):
    """Statistics over all axes but the first and ``feature_axes``.

    Variables: ``scale`` and ``bias`` with the axes ``feature_axes``.

    Raises:
      ValueError: ``feature_axes`` include the first axis.
    """

    epsilon: float = 1e-6
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    use_bias: bool = True
    use_scale: bool = True
    bias_init: Initializer = initializers.zeros
    scale_init: Initializer = initializers.ones
    feature_axes: Axes = -1
    axis_name: str | None = None
    axis_index_groups: Any = None
    use_fast_variance: bool = True
    force_float32_reductions: bool = True

    @compact
    def __call__(self, x: Any, *, mask: jax.Array | None = None) -> Any:
        """Normalise ``(batch, ...)``; positions where ``mask`` is False do not count."""
        feature_axes = positive_axes(x.ndim, self.feature_axes)
        if 0 in feature_axes:
            raise ValueError(
                "The channel axes cannot include the leading dimension as this is assumed to be the "
                f"batch axis. Found feature_axes={self.feature_axes}"
            )
        reduction_axes = [axis for axis in range(1, x.ndim) if axis not in feature_axes]
        mean, var = statistics(self, x, reduction_axes, mask)
        return normalize_with_fields(self, x, mean, var, reduction_axes, feature_axes)
