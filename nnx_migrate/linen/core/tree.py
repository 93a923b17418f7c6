"""Modules inside fields: found, replaced and named in lists, dicts and registered containers."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from flax import serialization
from flax.core import FrozenDict

# Of most fields the type alone says that no module is inside.
_ATOMS = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        type,
        types.FunctionType,
        types.BuiltinFunctionType,
        np.dtype,
        jax.sharding.PartitionSpec,
    }
)


def is_module(value: Any) -> bool:
    """Whether ``value`` is a module: a lazy one, or a Linen module (which has the same protocol)."""
    return getattr(type(value), "_try_setup", None) is not None


def map_modules(fn: Callable[[str, Any], Any], value: Any, suffix: str = "") -> Any:
    """``value`` with ``fn(suffix, module)`` for every module in it.

    The suffix is what Linen appends to a field's name: ``_0``, ``_key``, ``_key_0`` and so on; items
    are visited in the order of their keys as strings, so ``10`` before ``2``.

    >>> map_modules(lambda suffix, module: "layers" + suffix, [dense, dense])
    ['layers_0', 'layers_1']
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if is_module(value):
        return fn(suffix, value)
    if kind is list or kind is tuple:
        items = {str(i): item for i, item in enumerate(value)}
        made = _map_items(fn, items, suffix)
        return kind(made[str(i)] for i in range(len(value)))
    if kind is dict or kind is FrozenDict:
        made = _map_items(fn, {str(key): item for key, item in value.items()}, suffix)
        return kind({key: made[str(key)] for key in value})
    return _map_registered(fn, value, suffix)


def _map_items(fn: Callable[[str, Any], Any], items: dict[str, Any], suffix: str) -> dict[str, Any]:
    return {key: map_modules(fn, items[key], f"{suffix}_{key}") for key in sorted(items)}


def _map_registered(fn: Callable[[str, Any], Any], value: Any, suffix: str) -> Any:
    """The same for containers that flax can serialize: named tuples, `flax.struct` classes, ..."""
    state = serialization.to_state_dict(value)
    if not isinstance(state, dict) or not state:
        return value
    if not any(map(is_module, jax.tree.leaves(state, is_leaf=is_module))):
        return value
    return serialization.from_state_dict(value, _map_items(fn, state, suffix))


def modules_in(value: Any) -> Iterator[tuple[str, Any]]:
    """Suffix and module of every module in ``value``."""
    found: list[tuple[str, Any]] = []

    def note(suffix: str, module: Any) -> Any:
        found.append((suffix, module))
        return module

    map_modules(note, value)
    yield from found


def freeze_attr(value: Any) -> Any:
    """``value`` with tuples for lists and frozen dicts for dicts, all the way down.

    Fields of a bound module are read-only: what a call changed in them would be lost with the call.
    """
    if type(value) in _ATOMS:
        return value
    if isinstance(value, dict | FrozenDict):
        return FrozenDict({key: freeze_attr(item) for key, item in value.items()})
    if isinstance(value, list):
        return tuple(freeze_attr(item) for item in value)
    if isinstance(value, tuple):
        items = [freeze_attr(item) for item in value]
        keeps_type = hasattr(value, "_fields") or type(value).__name__ == "PartitionSpec"
        return type(value)(*items) if keeps_type else tuple(items)
    return value


def map_submodules(fn: Callable[[Any], Any], value: Any) -> Any:
    """``value``, frozen, with ``fn(module)`` for every module in it."""
    return freeze_attr(map_modules(lambda _, module: fn(module), value))


def get_suffix_value_pairs(tree_or_leaf: Any) -> list[tuple[str, Any]]:
    """Suffix and value of every leaf of a container, as Linen names them; one pair for a leaf."""
    state = serialization.to_state_dict(tree_or_leaf)
    if not isinstance(state, dict) or not state:
        return [("", tree_or_leaf)]
    return [
        (f"_{key}{suffix}", leaf)
        for key in sorted(state)
        for suffix, leaf in get_suffix_value_pairs(state[key])
        if not (isinstance(leaf, dict) and not leaf)
    ]
