"""Dropout: the public names of ``flax.linen.stochastic``.

Also those that flax's module imports itself, since code is found that takes them from there.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from flax.typing import PRNGKey
from jax import lax, random

from nnx_migrate.linen.layers.dropout import Dropout
from nnx_migrate.linen.module import Module, compact, merge_param

__all__ = [
    "Dropout",
    "Module",
    "PRNGKey",
    "Sequence",
    "compact",
    "jnp",
    "lax",
    "merge_param",
    "random",
]
