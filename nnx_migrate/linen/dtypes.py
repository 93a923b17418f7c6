"""Which dtype a layer computes in: the public names of ``flax.linen.dtypes``.

Also those that flax's module imports itself, since code is found that takes them from there.
"""

from typing import Any, TypeVar

import jax.numpy as jnp
from flax.typing import Dtype

from nnx_migrate.numerics.dtypes import canonicalize_dtype, promote_dtype

__all__ = ["Any", "Dtype", "T", "TypeVar", "canonicalize_dtype", "jnp", "promote_dtype"]


T = TypeVar("T", bound=tuple[Any, ...])
