"""Normalisation layers: the public names of ``flax.linen.normalization``.

Also those that flax's module imports itself, since code is found that takes them from there.
"""

import dataclasses
import functools
from collections.abc import Iterable
from dataclasses import field
from typing import Any

import jax
import jax.numpy as jnp
from flax.typing import Array, Axes, Dtype, Initializer, PRNGKey, Shape
from jax import lax
from jax.nn import initializers

from nnx_migrate.linen import dtypes, module, transforms
from nnx_migrate.linen.layers.batch_norm import BatchNorm
from nnx_migrate.linen.layers.group_norm import GroupNorm, InstanceNorm
from nnx_migrate.linen.layers.layer_norm import LayerNorm, RMSNorm
from nnx_migrate.linen.layers.norm_parameters import normalize
from nnx_migrate.linen.layers.parameter_norms import SpectralNorm, WeightNorm
from nnx_migrate.linen.module import Module, compact, merge_param
from nnx_migrate.linen.transforms import map_variables
from nnx_migrate.numerics.dtypes import canonicalize_dtype
from nnx_migrate.numerics.norms import (
    l2_normalize,
    mean_and_variance,
    positive_axes,
    squared_magnitude,
)

__all__ = [
    "Any",
    "Array",
    "Axes",
    "BatchNorm",
    "Dtype",
    "GroupNorm",
    "Initializer",
    "InstanceNorm",
    "Iterable",
    "LayerNorm",
    "Module",
    "PRNGKey",
    "RMSNorm",
    "Shape",
    "SpectralNorm",
    "WeightNorm",
    "canonicalize_dtype",
    "compact",
    "dataclasses",
    "dtypes",
    "field",
    "functools",
    "initializers",
    "jax",
    "jnp",
    "lax",
    "map_variables",
    "merge_param",
    "module",
    "transforms",
]

_abs_sq = squared_magnitude
_canonicalize_axes = positive_axes
_compute_stats = mean_and_variance
_l2_normalize = l2_normalize
_normalize = normalize
