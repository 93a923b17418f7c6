"""Logical axis names to a PartitionSpec: Linen's algorithm, without Linen.

Source: ``logical_to_mesh_axes`` in flax 0.12.8 and 0.12.12, ``linen/spmd.py`` (the same text in
both). NNX's own ``get_partition_spec`` is a different algorithm: the last rule of a name wins,
conflicts are not seen, and names without a rule stay in the spec.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, overload

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
    entries = _entries(names)
    walk = _walk(entries, _check_rules(rules))
    if walk.twice:
        raise ValueError(_twice(walk.twice, entries, array))
    if strict and (walk.losses or walk.names_without_rule):
        raise SilentResolutionError(tuple(_silent(walk, array)))
    return _spec(
        walk.entries if mesh is None else _entries_on_mesh(walk.entries, axis_sizes(mesh)), names
    )


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
    entries = _entries(names)
    walk = _walk(entries, _check_rules(rules))
    if walk.twice:
        raise ValueError(_twice(walk.twice, entries, array))
    result: Sequence[Entry] = walk.entries
    silent = _silent(walk, array)
    if mesh is not None:
        sizes = axis_sizes(mesh)
        silent += _axes_off_mesh(entries, result, sizes, array)
        result = _entries_on_mesh(result, sizes)
    silent.sort(key=lambda one: one.dimension)
    return Resolution(_spec(result, names), tuple(silent))


def unassigned_dimensions(names: Names, rules: Rules | None = None) -> tuple[int, ...]:
    """The dimensions whose names no rule applies to; in a spec they are None, as others may be.

    Raises:
      ValueError: as :func:`resolve_spec`.
    """
    entries = _entries(names)
    walk = _walk(entries, _check_rules(rules))
    if walk.twice:
        raise ValueError(_twice(walk.twice, entries, ""))
    return walk.open_dimensions


def axis_sizes(mesh: MeshLike) -> Mapping[str, int]:
    """Number of devices along each mesh axis."""
    return mesh if isinstance(mesh, Mapping) else mesh.shape


def mesh_axes(entry: Entry) -> tuple[str, ...]:
    """The mesh axes of one entry of a spec, or of one rule; UNCONSTRAINED and None have none."""
    if isinstance(entry, str):
        return (entry,)
    if not isinstance(entry, (tuple, list)):
        return ()
    for part in entry:
        if not isinstance(part, str):
            return tuple(axis for part in entry for axis in mesh_axes(part))
    return tuple(entry)


def _check_rules(rules: Rules | None) -> Rules:
    if rules is None:
        rules = get_logical_axis_rules()
    if not isinstance(rules, tuple | list):
        raise ValueError(  # noqa: TRY004 - as Linen
            f"logical axis rules: expected a list or tuple of pairs (name, mesh axes), found "
            f"{type(rules).__name__}. Order and repetition matter, so a mapping does not do; of "
            "AxisRules pass logical_axis_rules."
        )
    return rules


def _entries(names: Names) -> tuple[Any, ...]:
    if isinstance(names, PartitionSpec):
        partitions: tuple[Any, ...] = names.partitions
        return partitions
    return (names,) if isinstance(names, str) else tuple(names)


def _spec(entries: Sequence[Entry], names: Names) -> PartitionSpec:
    """The spec of the entries; what a PartitionSpec says besides its entries stays."""
    if isinstance(names, PartitionSpec):
        spec: PartitionSpec = names.update(partitions=entries)
        return spec
    return PartitionSpec(*entries)


class _Walk(NamedTuple):
    """What walking the rules gave.

    ``losses`` has the dimension, name, position, axes and the taken axes with their owners of each
    rule that was passed over; ``names_without_rule`` the dimensions and names that no rule mentions;
    ``twice`` the names at several dimensions, with which there was no walk; ``open_dimensions`` the
    dimensions whose names no rule applied to, for either reason.
    """

    entries: tuple[Entry, ...] = ()
    losses: tuple[tuple[int, str, int, Entry, tuple[tuple[str, str], ...]], ...] = ()
    names_without_rule: tuple[tuple[int, str], ...] = ()
    twice: tuple[str, ...] = ()
    open_dimensions: tuple[int, ...] = ()


def _walk(names: tuple[Any, ...], rules: Rules) -> _Walk:
    """The walk, remembered where names and rules cannot change: a model has few different ones."""
    if isinstance(rules, tuple):
        try:
            return _remembered_walk(names, rules)
        except TypeError:  # a list somewhere inside
            pass
    return _new_walk(names, rules)


def _new_walk(names: tuple[Any, ...], rules: Rules) -> _Walk:
    waiting = {name: dim for dim, name in enumerate(names) if isinstance(name, str)}
    entries: list[Entry] = [None if isinstance(name, str) else name for name in names]
    owners: dict[str, str] = {}
    if len(waiting) < len(names):
        # Only strings: None, UNCONSTRAINED and tuples of mesh axes may stand at several dimensions.
        logical = [name for name in names if isinstance(name, str)]
        if len(waiting) < len(logical):
            return _Walk(twice=tuple(name for name in sorted(waiting) if logical.count(name) > 1))
        owners = {axis: "" for entry in entries for axis in mesh_axes(entry)}
    losses = []
    for index, name, axes in _rules_of(waiting, rules):
        if name not in waiting:
            continue
        wanted = mesh_axes(axes)
        if owners.keys().isdisjoint(wanted):
            entries[waiting.pop(name)] = axes
            owners.update(dict.fromkeys(wanted, name))
        else:
            owner_pairs = tuple((axis, owners[axis]) for axis in wanted if axis in owners)
            losses.append((waiting[name], name, index, axes, owner_pairs))
    losers = {name for _, name, *_ in losses}
    names_without_rule = tuple((dim, name) for name, dim in waiting.items() if name not in losers)
    return _Walk(
        tuple(entries),
        tuple(losses),
        names_without_rule,
        open_dimensions=tuple(sorted(waiting.values())),
    )


_remembered_walk = lru_cache(maxsize=4096)(_new_walk)


def _rules_of(names: Collection[str], rules: Rules) -> list[tuple[int, str, Entry]]:
    """Position, name and axes of the rules that mention one of the names."""
    try:
        return [(index, name, axes) for index, (name, axes) in enumerate(rules) if name in names]
    except (TypeError, ValueError):
        index, rule = next((at, rule) for at, rule in enumerate(rules) if not _is_rule(rule))
        raise ValueError(
            f"logical axis rules: expected a pair (name, mesh axes) at position {index}, "
            f"found {rule!r}"
        ) from None


def _is_rule(rule: Any) -> bool:
    try:
        name, _ = rule
        hash(name)
    except (TypeError, ValueError):
        return False
    return True


def _twice(twice: tuple[str, ...], names: tuple[Any, ...], array: str) -> str:
    return (
        f"{array or 'array'}: expected each logical axis name at one dimension, found "
        f"{', '.join(map(repr, twice))} more than once in {names!r}. Give the dimensions "
        "different names, or None where a dimension is not to be sharded."
    )


def _entries_on_mesh(entries: Sequence[Entry], sizes: Mapping[str, int]) -> list[Entry]:
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


def _silent(walk: _Walk, array: str) -> list[Silent]:
    """The rules that lost, with what came instead, and the names no rule mentions."""
    silent: list[Silent] = [
        RuleLost(array, dim, name, index, axes, owner_pairs, walk.entries[dim])
        for dim, name, index, axes, owner_pairs in walk.losses
    ]
    silent += [NameUnmatched(array, dim, name) for dim, name in walk.names_without_rule]
    return sorted(silent, key=lambda one: one.dimension)


def _axes_off_mesh(
    names: tuple[Any, ...], result: Sequence[Entry], sizes: Mapping[str, int], array: str
) -> list[AxesDropped]:
    losses: list[AxesDropped] = []
    for dim, entry in enumerate(result):
        axes = tuple(mesh_axes(entry))
        one = tuple(axis for axis in axes if sizes.get(axis) == 1)
        absent = tuple(axis for axis in axes if axis not in sizes)
        if one or absent:
            name = names[dim] if isinstance(names[dim], str) else ""
            losses.append(AxesDropped(array, dim, name, one, absent))
    return losses
