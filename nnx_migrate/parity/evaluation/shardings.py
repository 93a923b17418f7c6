"""How the arrays of one side are laid out on the mesh, as plain data that two sides can compare."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jax.sharding import NamedSharding, PartitionSpec, Sharding

# Mesh axes per dimension; dimensions at the end that are not sharded are left out.
Layout = tuple[tuple[str, ...], ...]

UNCONSTRAINED = "UNCONSTRAINED"


@dataclass(frozen=True)
class ArrayLayout:
    """One array of a training state: a parameter, or a part of the optimizer's state.

    ``names`` are its logical axis names, None when nobody gave it any. ``spec`` is what the side's
    own resolver makes of them by the rules, mesh axes of size 1 included; ``sharding`` is the
    sharding that the side asks for and ``placed`` the one that the array has, both without them.
    ``bytes`` is what a device holds of it.
    """

    rank: int
    names: tuple[str | None, ...] | None
    spec: Layout
    sharding: Layout
    placed: Layout
    bytes: int


Layouts = dict[str, ArrayLayout]


def layout_of(spec: Iterable[Any]) -> Layout:
    """Canonical form of a PartitionSpec: one tuple of axes per dimension, no empty ones at the end."""
    entries = [_axes(entry) for entry in spec]
    while entries and not entries[-1]:
        entries.pop()
    return tuple(entries)


def _axes(entry: Any) -> tuple[str, ...]:
    if entry is None:
        return ()
    if entry is PartitionSpec.UNCONSTRAINED:
        return (UNCONSTRAINED,)
    return (entry,) if isinstance(entry, str) else tuple(entry)


def layout_on(sharding: Any) -> Layout:
    """What a sharding splits, without mesh axes of size 1.

    Raises:
        ValueError: a sharding that is neither a NamedSharding nor replicated.
    """
    if isinstance(sharding, NamedSharding):
        sizes = sharding.mesh.shape
        entries = [_axes(entry) for entry in sharding.spec]
        return layout_of(tuple(axis for axis in axes if sizes.get(axis) != 1) for axes in entries)
    if sharding.is_fully_replicated:
        return ()
    raise ValueError(
        f"expected a NamedSharding, found {type(sharding).__name__}, which has no mesh axes"
    )


def units_of(sharding: Any) -> Layout:
    """The mesh axes of size 1 that a sharding names: it would split more on a mesh that uses them."""
    if not isinstance(sharding, NamedSharding):
        return ()
    sizes = sharding.mesh.shape
    entries = [_axes(entry) for entry in sharding.spec]
    return layout_of(tuple(axis for axis in axes if sizes.get(axis) == 1) for axes in entries)


def placement_of(array: Any, sharding: Layout) -> Layout:
    """Where an array is; one that is abstract and that nobody has placed is where it is wanted."""
    return sharding if array.sharding is None else layout_on(array.sharding)


def bytes_on(array: Any, sharding: Sharding) -> int:
    """Bytes that a device holds of an array, abstract or not, that is sharded so."""
    return math.prod(sharding.shard_shape(array.shape)) * int(array.dtype.itemsize)


def logical_names(names: Iterable[Any] | None) -> tuple[str | None, ...] | None:
    """Logical axis names as plain data: what is no name (None, UNCONSTRAINED) is None or a text."""
    if names is None:
        return None
    return tuple(name if name is None or isinstance(name, str) else str(name) for name in names)


def unit_axes(layouts: Mapping[str, ArrayLayout]) -> tuple[str, ...]:
    """Mesh axes of size 1 that specs name, in order of appearance: the mesh does not use them."""
    named = (axis for one in layouts.values() for axes in one.spec for axis in axes)
    used = {axis for one in layouts.values() for axes in one.sharding for axis in axes}
    return tuple(dict.fromkeys(axis for axis in named if axis not in used))


def show(layout: Layout) -> str:
    """Text of a layout: ``P(fsdp+expert, -, tensor)``."""
    return f"P({', '.join('+'.join(axes) or '-' for axes in layout)})"
