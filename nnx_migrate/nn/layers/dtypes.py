"""Dtype rules of Linen layers, and adapters for the function-valued fields that NNX calls otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from nnx_migrate.numerics.dtypes import canonicalize_dtype, promote_dtype

__all__ = [
    "canonicalize_dtype",
    "keep_dtype",
    "linen_dot_general",
    "linen_promote_dtype",
    "promote_dtype",
]

T = TypeVar("T")


def keep_dtype(arrays: T, /, *, dtype: Any = None, inexact: bool = True) -> T:
    """Return ``arrays`` unchanged: the ``promote_dtype`` argument under which NNX norms are Linen's.

    Native norms cast input, scale, bias and running statistics to ``dtype`` *before* computing;
    Linen computes in float32 and casts the result (flax 0.12.8, linen/normalization.py).
    """
    return arrays


def linen_promote_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adapt a Linen ``promote_dtype`` function (arrays as arguments) to NNX's (one tuple)."""

    def promote(arrays: Any, /, **options: Any) -> tuple[Any, ...]:
        return tuple(function(*arrays, **options))

    return promote


def linen_dot_general(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Adapt a ``dot_general`` or ``conv_general_dilated`` of Linen's protocol to NNX's.

    NNX layers also pass ``out_sharding``, which functions written for Linen do not take.

    Raises:
      TypeError: when the adapted function is called with an ``out_sharding`` other than None.
    """

    def operation(*args: Any, out_sharding: Any = None, **options: Any) -> jax.Array:
        if out_sharding is not None:
            raise TypeError(
                f"{function!r} was written for Linen and takes no out_sharding, got {out_sharding}"
            )
        return function(*args, **options)

    return operation
