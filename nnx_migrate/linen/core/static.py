"""Any value as a static part of a graph: it hashes, and equals what means the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import jax
import numpy as np

from nnx_migrate.linen.core.tree import is_module


class Static:
    """A value that jit and NNX may compare and hash, whatever it is.

    Lists, dicts and sets compare by what they hold, arrays of numpy by their bytes, arrays of jax and
    objects that do not hash by identity.
    """

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = _key(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.value)


def _key(value: Any) -> Hashable:
    kind = type(value)
    if kind in (bool, int, float, str, type(None)):
        return kind, value
    if is_module(value) and value.scope is None and not value._is_built:
        return kind, value.name, tuple(_key(getattr(value, field)) for field in value._fields)
    if isinstance(value, jax.Array):
        return kind, id(value)
    if isinstance(value, np.ndarray):
        return kind, value.shape, str(value.dtype), value.tobytes()
    if isinstance(value, Mapping):
        return kind, tuple((_key(key), _key(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return kind, tuple(map(_key, value))
    try:
        hash(value)
    except TypeError:
        return kind, id(value)
    return kind, value
