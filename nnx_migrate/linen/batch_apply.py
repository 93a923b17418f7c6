"""Merged batch axes: the public names of ``flax.linen.batch_apply``.

Also those that flax's module imports itself, since code is found that takes them from there.
"""

import jax
import jax.numpy as jnp
import numpy as np

from nnx_migrate.numerics.batch_apply import (
    BatchApply,
    arbitrary_mergeable_leaf,
    merge_leading_dims,
    ndim_at_least,
    split_leading_dim,
)

__all__ = [
    "BatchApply",
    "arbitrary_mergeable_leaf",
    "jax",
    "jnp",
    "merge_leading_dims",
    "ndim_at_least",
    "np",
    "split_leading_dim",
]
