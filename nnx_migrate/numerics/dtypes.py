"""The dtype that a Linen layer computes in (flax 0.12.8, linen/dtypes.py)."""

from typing import Any

import jax.numpy as jnp
from flax.typing import Dtype


def canonicalize_dtype(*args: Any, dtype: Dtype | None = None, inexact: bool = True) -> Any:
    """The dtype that ``args`` are computed in: ``dtype`` if given, else their common dtype.

    Args:
      *args: arrays or what becomes one; None does not count.
      inexact: only floating and complex dtypes will do: integers give float32.

    Raises:
      ValueError: ``inexact`` and ``dtype`` is neither floating nor complex.
    """
    if dtype is None:
        dtype = jnp.result_type(*[jnp.asarray(x) for x in args if x is not None])
        if inexact and not jnp.issubdtype(dtype, jnp.inexact):
            dtype = jnp.promote_types(jnp.float32, dtype)
    if inexact and not jnp.issubdtype(dtype, jnp.inexact):
        raise ValueError(f"Dtype must be inexact: expected floating or complex, found {dtype}")
    return dtype


def promote_dtype(*args: Any, dtype: Any = None, inexact: bool = True) -> list[Any]:
    """Cast ``args`` to one dtype (see :func:`canonicalize_dtype`); None stays None."""
    dtype = canonicalize_dtype(*args, dtype=dtype, inexact=inexact)
    return [None if x is None else jnp.asarray(x, dtype) for x in args]
