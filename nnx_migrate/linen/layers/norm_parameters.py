"""Scale and bias of normalisation layers (flax 0.12.8, linen/normalization.py)."""

from typing import Any

import jax.numpy as jnp
from flax.typing import Array, Axes, Dtype, Initializer

from nnx_migrate.linen.module import Module
from nnx_migrate.numerics.norms import (
    feature_shapes,
    mean_and_variance,
    normalize_and_scale,
    positive_axes,
)


def normalize(
    mdl: Module,
    x: Array,
    mean: Array,
    var: Array,
    reduction_axes: Axes,
    feature_axes: Axes,
    dtype: Dtype | None,
    param_dtype: Dtype,
    epsilon: float,
    use_bias: bool,
    use_scale: bool,
    bias_init: Initializer,
    scale_init: Initializer,
    force_float32_reductions: bool = True,
) -> Any:
    """``(x - mean) / sqrt(var + epsilon) * scale + bias``, with parameters ``scale`` and ``bias`` of ``mdl``.

    Args:
      mean, var: without ``reduction_axes``.
      feature_axes: the axes of ``x`` that scale and bias have.
      dtype: of the result; None: the common one of input and parameters.
      force_float32_reductions: False computes with the parameters in ``param_dtype``.
    """
    shape, broadcast_shape = feature_shapes(x.shape, positive_axes(x.ndim, feature_axes))

    def parameter(name: str, init: Initializer) -> Any:
        def make() -> Any:
            value = mdl.param(name, init, shape, param_dtype).reshape(broadcast_shape)
            return value if force_float32_reductions else jnp.asarray(value, param_dtype)

        return make

    return normalize_and_scale(
        x,
        mean,
        var,
        reduction_axes,
        epsilon=epsilon,
        dtype=dtype,
        scale=parameter("scale", scale_init) if use_scale else None,
        bias=parameter("bias", bias_init) if use_bias else None,
    )


def statistics(mdl: Any, x: Array, axes: Any, mask: Any, **options: Any) -> tuple[Array, Array]:
    """Mean and variance as the fields of the layer ``mdl`` ask for; ``options`` come before them."""
    fields = {
        "dtype": mdl.dtype,
        "axis_name": mdl.axis_name,
        "axis_index_groups": mdl.axis_index_groups,
        "use_fast_variance": mdl.use_fast_variance,
        "force_float32_reductions": mdl.force_float32_reductions,
        **options,
    }
    return mean_and_variance(x, axes, mask=mask, **fields)


def normalize_with_fields(
    mdl: Any, x: Array, mean: Array, var: Array, reduction_axes: Any, feature_axes: Any
) -> Any:
    """:func:`normalize` with the fields of the layer ``mdl``, which has scale and bias."""
    return normalize(
        mdl,
        x,
        mean,
        var,
        reduction_axes,
        feature_axes,
        mdl.dtype,
        mdl.param_dtype,
        mdl.epsilon,
        mdl.use_bias,
        mdl.use_scale,
        mdl.bias_init,
        mdl.scale_init,
        mdl.force_float32_reductions,
    )
