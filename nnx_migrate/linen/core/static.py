"""Any value as a static part of a graph: it hashes, and equals what means the same."""

from __future__ import annotations

import dataclasses
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

    __slots__ = ("_hash", "_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = _key(value)
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Static) and self._key == other._key)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._key)
        return self._hash

    def __repr__(self) -> str:
        return repr(self.value)


def is_fixed(value: Any) -> bool:
    """Whether a value stays what it is, so that a `Static` of it may be kept."""
    if isinstance(value, tuple):
        return all(map(is_fixed, value))
    return isinstance(value, Hashable) and not is_module(value)


def _fields(kind: Any) -> list[str]:
    """The fields of a class of modules, Linen's own or ours, that its instances hold."""
    if hasattr(kind, "_nnm_fields"):
        return list(kind._nnm_fields)
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    return [name for name in names if name not in ("parent", "name")]


def _key(value: Any) -> Hashable:
    kind = type(value)
    if kind in (bool, int, float, str, type(None)):
        return kind, value
    if is_module(value) and value.scope is None and not getattr(value, "_nnm_is_built", False):
        field_values = [vars(value).get(field) for field in _fields(kind)]
        return kind, value.name, tuple(map(_key, field_values))
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
