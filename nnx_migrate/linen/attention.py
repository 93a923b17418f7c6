"""Attention: the public names of ``flax.linen.attention``.

Also those that flax's module imports itself, since code is found that takes them from there.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, overload

import jax
import jax.numpy as jnp
from flax.typing import Array, DotGeneralT, Dtype, Initializer, PrecisionLike, PRNGKey, Shape
from jax import lax, random

from nnx_migrate.linen import initializers
from nnx_migrate.linen.layers.dense import DenseGeneral
from nnx_migrate.linen.layers.dot_product import (
    combine_masks,
    dot_product_attention,
    dot_product_attention_weights,
    make_attention_mask,
    make_causal_mask,
)
from nnx_migrate.linen.layers.layer_norm import LayerNorm
from nnx_migrate.linen.layers.multi_head_attention import (
    MultiHeadAttention,
    MultiHeadDotProductAttention,
    SelfAttention,
)
from nnx_migrate.linen.layers.operations import default_kernel_init
from nnx_migrate.linen.module import Module, compact, merge_param
from nnx_migrate.numerics.dtypes import promote_dtype

__all__ = [
    "Any",
    "Array",
    "Callable",
    "DenseGeneral",
    "DotGeneralT",
    "Dtype",
    "Initializer",
    "LayerNorm",
    "Module",
    "MultiHeadAttention",
    "MultiHeadDotProductAttention",
    "PRNGKey",
    "PrecisionLike",
    "SelfAttention",
    "Shape",
    "combine_masks",
    "compact",
    "default_kernel_init",
    "dot_product_attention",
    "dot_product_attention_weights",
    "functools",
    "initializers",
    "inspect",
    "jax",
    "jnp",
    "lax",
    "make_attention_mask",
    "make_causal_mask",
    "merge_param",
    "overload",
    "promote_dtype",
    "random",
    "warnings",
]
