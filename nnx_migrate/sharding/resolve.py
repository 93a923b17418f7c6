"""Logical axis names to a PartitionSpec: Linen's algorithm, without Linen.

Source: ``logical_to_mesh_axes`` in flax 0.12.8 and 0.12.12, ``linen/spmd.py`` (the same text in
both). NNX's own ``get_partition_spec`` is a different algorithm: the last rule of a name wins,
conflicts are not seen, and names without a rule stay in the spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from flax.core.spmd import get_logical_axis_rules
from jax.sharding import AbstractMesh, Mesh, PartitionSpec

from nnx_migrate.sharding.silent import (
    AxesDropped,
    NameUnmatched,
    RuleLost,
    Silent,
    SilentResolutionError,
)

# An entry of a spec or the axes of a rule: None, a mesh axis, several, or UNCONSTRAINED. jax types
# UNCONSTRAINED as a class of its own that it does not export.
Entry = Any
Names = Sequence[Any] | PartitionSpec | str
Rules = Sequence[tuple[str, Entry]]
MeshLike = Mesh | AbstractMesh | Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Resolution:
    """A spec and all that was decided silently on the way to it, in order of the dimensions."""

    spec: PartitionSpec
    silent: tuple[Silent, ...]


@overload
def resolve_spec(
    names: None,
    rules: Rules | None = ...,
    mesh: MeshLike | None = ...,
    *,
    strict: bool = ...,
    array: str = ...,
) -> None: ...
@overload
def resolve_spec(
    names: Names,
    rules: Rules | None = ...,
    mesh: MeshLike | None = ...,
    *,
    strict: bool = ...,
    array: str = ...,
) -> PartitionSpec: ...
def resolve_spec(
    names: Names | None,
    rules: Rules | None = None,
    mesh: MeshLike | None = None,
    *,
    strict: bool = False,
    array: str = "",
) -> PartitionSpec | None:
    """The PartitionSpec of an array whose dimensions have logical names.

    The rules are walked in order. A rule applies when its name is among the names, the name's
    dimension has nothing yet, and none of the rule's mesh axes is in use; else it is passed over
    *whole*, and a later rule of the same name gets its chance. ``None``, ``()`` and ``[]`` are
    assignments like any other. Dimensions that no rule reached get None. Only then, if there is a
    mesh, its axes of size 1 and axes it does not have leave the spec: an axis of size 1 still
    takes part in conflicts.

    Args:
      names: one entry per dimension: a logical name, or None, UNCONSTRAINED or a tuple of mesh
        axes, which stay as they are (the tuple's axes count as used). A string is one name; a
        PartitionSpec keeps its ``reduced`` and ``unreduced``. None gives None, as in Linen.
      rules: pairs (name, mesh axes), the axes being a string, a tuple or list of strings, None or
        UNCONSTRAINED. Without: the rules of the context, set by Linen's ``logical_axis_rules`` or
        NNX's (one and the same).
      mesh: a Mesh, an AbstractMesh, or the size of each mesh axis. Without: Linen's answer.
      strict: raise where Linen silently passes over a rule or a name. :func:`explain_spec` returns
        the same facts.
      array: what messages call the array.

    Returns:
      A spec with one entry per name, in jax's own form (a tuple of one axis is that axis).

    Raises:
      ValueError: a name occurs twice, or the rules are not pairs.
      SilentResolutionError: with ``strict``; a ValueError.
    """
    if names is None:
        return None
    rules = _checked(rules)
    entries, blank = _entries(names)
    result, lost, waiting = _assign(entries, rules, array)
    if strict and (lost or waiting):
        raise SilentResolutionError(tuple(_silent(result, lost, waiting, array)))
    spec: PartitionSpec = blank.update(result if mesh is None else _kept(result, axis_sizes(mesh)))
    return spec


def explain_spec(
    names: Names,
    rules: Rules | None = None,
    mesh: MeshLike | None = None,
    *,
    array: str = "",
) -> Resolution:
    """As :func:`resolve_spec`, with what it decided silently.

    Axes dropped for the mesh are listed here too, though ``strict`` does not object to them.
    """
    rules = _checked(rules)
    entries, blank = _entries(names)
    result, lost, waiting = _assign(entries, rules, array)
    silent: list[Silent] = [*_silent(result, lost, waiting, array)]
    if mesh is not None:
        sizes = axis_sizes(mesh)
        silent += _dropped(entries, result, sizes, array)
        result = _kept(result, sizes)
    silent.sort(key=lambda one: one.dimension)
    return Resolution(blank.update(result), tuple(silent))


def axis_sizes(mesh: MeshLike) -> Mapping[str, int]:
    """Number of devices along each mesh axis."""
    return mesh if isinstance(mesh, Mapping) else mesh.shape


def mesh_axes(entry: Entry) -> Iterator[str]:
    """The mesh axes of one entry of a spec, or of one rule; UNCONSTRAINED and None have none."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, tuple | list):
        for part in entry:
            yield from mesh_axes(part)


def _checked(rules: Rules | None) -> Rules:
    if rules is None:
        rules = get_logical_axis_rules()
    if not isinstance(rules, tuple | list):
        raise ValueError(  # noqa: TRY004 - as Linen
            f"logical axis rules: expected a list or tuple of pairs (name, mesh axes), found "
            f"{type(rules).__name__}. Order and repetition matter, so a mapping does not do."
        )
    return rules


def _entries(names: Names) -> tuple[tuple[Any, ...], PartitionSpec]:
    """The names as a tuple, and the spec to fill: it keeps what a spec says besides its entries."""
    if isinstance(names, PartitionSpec):
        return names.partitions, names
    return ((names,) if isinstance(names, str) else tuple(names)), PartitionSpec()


def _assign(
    names: tuple[Any, ...], rules: Rules, array: str
) -> tuple[list[Entry], list[RuleLost], dict[str, int]]:
    """Walk the rules: the entries, the rules that lost, and the names left with their dimensions."""
    waiting = {name: dim for dim, name in enumerate(names) if isinstance(name, str)}
    result: list[Entry] = [None if isinstance(name, str) else name for name in names]
    if len(waiting) < len(names):
        _refuse_duplicates(names, array)
    owners = {axis: "" for entry in result for axis in mesh_axes(entry)}
    lost: list[RuleLost] = []
    for index, rule in enumerate(rules):
        try:
            name, axes = rule
            dim = waiting.get(name)
        except (TypeError, ValueError):
            raise ValueError(
                f"logical axis rules: expected a pair (name, mesh axes) at position {index}, "
                f"found {rule!r}"
            ) from None
        if dim is None:
            continue
        taken = tuple((axis, owners[axis]) for axis in mesh_axes(axes) if axis in owners)
        if taken:
            lost.append(RuleLost(array, dim, name, index, axes, taken, None))
            continue
        result[dim] = axes
        owners.update((axis, name) for axis in mesh_axes(axes))
        del waiting[name]
        if not waiting:
            break
    return result, lost, waiting


def _refuse_duplicates(names: tuple[Any, ...], array: str) -> None:
    # Only strings: None, UNCONSTRAINED and tuples of mesh axes may stand at several dimensions.
    logical = [name for name in names if isinstance(name, str)]
    twice = sorted({name for name in logical if logical.count(name) > 1})
    if twice:
        raise ValueError(
            f"{array or 'array'}: expected each logical axis name at one dimension, found "
            f"{', '.join(map(repr, twice))} more than once in {names!r}. Give the dimensions "
            "different names, or None where a dimension is not to be sharded."
        )


def _kept(entries: list[Entry], sizes: Mapping[str, int]) -> list[Entry]:
    """The entries without axes that the mesh lacks or has one device along."""
    kept: list[Entry] = []
    for entry in entries:
        if isinstance(entry, str):
            kept.append(entry if sizes.get(entry, 1) != 1 else None)
        elif isinstance(entry, tuple | list):
            kept.append(tuple(axis for axis in entry if sizes.get(axis, 1) != 1))
        else:
            kept.append(entry)
    return kept


def _silent(
    result: list[Entry], lost: list[RuleLost], waiting: dict[str, int], array: str
) -> list[RuleLost | NameUnmatched]:
    """The rules that lost, now with what came instead, and the names no rule mentions."""
    losers = {one.dimension for one in lost}
    silent: list[RuleLost | NameUnmatched] = [
        replace(one, instead=result[one.dimension]) for one in lost
    ]
    silent += [
        NameUnmatched(array, dim, name) for name, dim in waiting.items() if dim not in losers
    ]
    return sorted(silent, key=lambda one: one.dimension)


def _dropped(
    names: tuple[Any, ...], result: list[Entry], sizes: Mapping[str, int], array: str
) -> list[AxesDropped]:
    dropped: list[AxesDropped] = []
    for dim, entry in enumerate(result):
        axes = tuple(mesh_axes(entry))
        one = tuple(axis for axis in axes if sizes.get(axis) == 1)
        absent = tuple(axis for axis in axes if axis not in sizes)
        if one or absent:
            name = names[dim] if isinstance(names[dim], str) else ""
            dropped.append(AxesDropped(array, dim, name, one, absent))
    return dropped
