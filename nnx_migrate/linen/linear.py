"""Linear layers: the public names of ``flax.linen.linear``.

Also those that flax's module imports itself, since code is found that takes them from there.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import opt_einsum
from flax.core import meta
from flax.typing import (
    Array,
    ConvGeneralDilatedT,
    DotGeneralT,
    Dtype,
    Initializer,
    LaxPadding,
    PaddingLike,
    PrecisionLike,
    PRNGKey,
    Shape,
)
from jax import eval_shape, lax
from jax.core import ShapedArray

from nnx_migrate.linen import initializers, module
from nnx_migrate.linen.layers.conv import Conv, ConvBase, ConvLocal
from nnx_migrate.linen.layers.conv_transpose import ConvTranspose
from nnx_migrate.linen.layers.dense import Dense, DenseGeneral
from nnx_migrate.linen.layers.einsum import Einsum
from nnx_migrate.linen.layers.embed import Embed
from nnx_migrate.linen.layers.operations import (
    PromoteDtypeFn,
    default_embed_init,
    default_kernel_init,
)
from nnx_migrate.linen.module import Module, compact
from nnx_migrate.numerics.axes import as_tuple, sorted_axes
from nnx_migrate.numerics.convolution import canonicalize_padding, channels_last
from nnx_migrate.numerics.dtypes import promote_dtype

__all__ = [
    "Any",
    "Array",
    "Conv",
    "ConvGeneralDilatedT",
    "ConvLocal",
    "ConvTranspose",
    "Dense",
    "DenseGeneral",
    "DotGeneralT",
    "Dtype",
    "Einsum",
    "Embed",
    "Initializer",
    "Iterable",
    "LaxPadding",
    "Module",
    "PRNGKey",
    "PaddingLike",
    "PrecisionLike",
    "PromoteDtypeFn",
    "Protocol",
    "Sequence",
    "Shape",
    "ShapedArray",
    "canonicalize_padding",
    "compact",
    "default_embed_init",
    "default_kernel_init",
    "eval_shape",
    "initializers",
    "jax",
    "jnp",
    "lax",
    "meta",
    "module",
    "np",
    "opt_einsum",
    "promote_dtype",
]

_Conv = ConvBase
_canonicalize_tuple = as_tuple
_conv_dimension_numbers = channels_last
_normalize_axes = sorted_axes
