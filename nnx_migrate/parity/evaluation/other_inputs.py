"""The same call on inputs that reach what the case's own may not: conditions, signs, masks.

Nobody looks at these outputs by themselves: they need not make sense, they only have to be alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from nnx_migrate.parity.values import is_inexact

FACTOR = 1000  # what makes a float large


def other_inputs(arrays: Sequence[Any]) -> dict[str, list[Any]]:
    """Inputs of the same shapes by what was done to them; only those that differ from ``arrays``."""
    variants = {
        how: [_change_leaf(one, change) for one in arrays] for how, change in _CHANGES.items()
    }
    return {
        how: found
        for how, found in variants.items()
        if any(one is not other for one, other in zip(found, arrays, strict=True))
    }


def _change_leaf(value: Any, change: Callable[[Any], Any | None]) -> Any:
    found = change(value)
    return value if found is None else jax.device_put(found, value.sharding)


def _times(factor: int) -> Callable[[Any], Any | None]:
    def change(value: Any) -> Any | None:
        is_float = is_inexact(value.dtype)
        return value * jnp.asarray(factor, value.dtype) if is_float else None

    return change


def _rearrange(value: Any) -> Any | None:
    """Integers in the reverse order, as any of them may be an index; the opposite of booleans."""
    if value.dtype == jnp.bool_:
        return ~value
    is_integer = jnp.issubdtype(value.dtype, jnp.integer)
    return jnp.flip(value) if is_integer and value.size > 1 else None


_CHANGES: Mapping[str, Callable[[Any], Any | None]] = {
    f"with float inputs times {-FACTOR}": _times(-FACTOR),
    f"with float inputs times {FACTOR}": _times(FACTOR),
    "with integer inputs reversed and boolean ones inverted": _rearrange,
}
