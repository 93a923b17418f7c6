"""Leading axes merged around a call (flax 0.12.8, linen/batch_apply.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def ndim_at_least(x: Any, num_dims: int) -> bool:
    """Whether ``x``, an array or a number, has ``num_dims`` axes or more."""
    array = x if isinstance(x, jax.Array | np.ndarray) else jnp.asarray(x)
    return bool(array.ndim >= num_dims)


def arbitrary_mergeable_leaf(min_num_dims: int, args: Any, kwargs: Any) -> Any:
    """The first leaf of ``args``, then ``kwargs``, with that many axes; None if there is none."""
    leaves = [*jax.tree.leaves(args), *jax.tree.leaves(kwargs)]
    return next((leaf for leaf in leaves if ndim_at_least(leaf, min_num_dims)), None)


def merge_leading_dims(x: Any, num_dims: int) -> Any:
    """``x`` with its first ``num_dims`` axes as one; as it is if it has fewer."""
    if not ndim_at_least(x, num_dims):
        return x
    return x.reshape((math.prod(x.shape[:num_dims]), *x.shape[num_dims:]))


def split_leading_dim(x: Any, to_dim: tuple[int, ...]) -> Any:
    """``x`` with its first axis split into axes of the sizes ``to_dim``."""
    return x.reshape(to_dim + x.shape[1:])


class BatchApply:
    """``linen.BatchApply``: merge the first ``num_dims`` axes, call ``f``, split them again.

    Arrays with fewer axes pass unchanged. The sizes of the first argument that has enough axes are
    those that results are split into.

    Raises:
      ValueError: no argument has ``num_dims`` axes.
    """

    def __init__(self, f: Callable[..., Any], num_dims: int = 2) -> None:
        """Wrap ``f``, which sees ``num_dims`` axes as one."""
        self._f = f
        self.num_dims = num_dims

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function on merged arguments."""
        example = arbitrary_mergeable_leaf(self.num_dims, args, kwargs)
        if example is None:
            raise ValueError(
                f"BatchApply requires at least one input with at least {self.num_dims} axes"
            )
        sizes = example.shape[: self.num_dims]
        args, kwargs = jax.tree.map(lambda x: merge_leading_dims(x, self.num_dims), (args, kwargs))
        return jax.tree.map(lambda x: split_leading_dim(x, sizes), self._f(*args, **kwargs))
