"""What is left of a value when a loop may have run any number of rounds.

A value that a round changes is not what it was before the loop: only what both have in common
holds at the start of every round.
"""

from __future__ import annotations

from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.joining import as_array, common_rank
from nnx_migrate.abstract.lists import alike
from nnx_migrate.abstract.values import (
    Argument,
    Array,
    Choice,
    ConcatenatedList,
    ExtendedList,
    Record,
    RepeatedItem,
    Sequence,
    Static,
    Unknown,
    Value,
)

_VARYING = f"{ex.FOREIGN}varying_"


def varying(name: str, line: int) -> Static:
    """A plain value that a loop changes: some value, which no text of ``__init__`` spells."""
    return Static(ex.name(f"{_VARYING}{name}_{line}"))


def is_varying(identifier: str) -> bool:
    """Whether a name in an expression stands for a plain value that a loop changes."""
    return identifier.startswith(_VARYING)


def widen(old: Value, new: Value, name: str, line: int) -> Value:
    """What ``old`` (before a round) and ``new`` (after it) have in common.

    ``name`` and ``line`` say which local of which loop it is.
    """
    if old is new or old == new or isinstance(old, Unknown):
        return old
    match old, new:
        case (Sequence(), Sequence()) if len(old.items) == len(new.items):
            pairs = zip(old.items, new.items, strict=True)
            return Sequence(tuple(widen(a, b, name, line) for a, b in pairs), old.is_list)
        case (Record(), Record()) if old.entries.keys() == new.entries.keys():
            entries = {
                key: widen(value, new.entries[key], f"{name}_{key}", line)
                for key, value in old.entries.items()
            }
            return Record(entries, old.default)
        case (Static(), Static()):
            return varying(name, line)
    one, two = as_array(old), as_array(new)
    if one is not None and two is not None:
        return common_axes(one, two)
    items, added = items_of(old), items_of(new)
    if items is not None and added is not None:
        return RepeatedItem(_join([*items, *added], name, line)) if items or added else old
    return Unknown("a loop changes it", first=old)


def _join(items: list[Value], name: str, line: int) -> Value:
    result = items[0]
    for one in items[1:]:
        result = widen(result, one, name, line)
    return result


def items_of(value: Value) -> list[Value] | None:
    """Every item that a list may hold; None for what is no list."""
    match value:
        case Sequence(items=items):
            return list(items)
        case RepeatedItem(item=item):
            return [item]
        case ExtendedList(first=first, rest=rest):
            return [*first, rest.item]
        case ConcatenatedList():
            return [alike(value).item]
    return None


def common_axes(one: Array, two: Array) -> Array:
    """The axes, counted from the last, that two arrays agree on."""
    rank = one.rank if one.rank == two.rank else None
    width = max(len(one.tail), len(two.tail), 1)
    if rank is not None:
        width = min(width, rank)
    pairs = zip(one.last_sizes(width), two.last_sizes(width), strict=True)
    return common_rank([one, two], tuple(a if a == b else None for a, b in pairs))


def forgotten(value: Value, names: set[str]) -> Value:
    """The value without sizes that read one of ``names``."""
    match value:
        case Array(tail=tail) if any(one and one.names & names for one in tail):
            sizes = tuple(None if one and one.names & names else one for one in tail)
            return value.of(sizes)
        case Sequence() if type(value) is Sequence:
            return Sequence(tuple(forgotten(one, names) for one in value.items), value.is_list)
        case RepeatedItem(item=item):
            return replace(value, item=forgotten(item, names))
        case ExtendedList(first=first, rest=rest):
            last = forgotten(rest, names)
            firsts = tuple(forgotten(one, names) for one in first)
            return ExtendedList(firsts, last) if isinstance(last, RepeatedItem) else value
        case Record(entries=entries):
            return Record({k: forgotten(v, names) for k, v in entries.items()}, value.default)
        case Choice(options=options):
            return replace(value, options=tuple(forgotten(one, names) for one in options))
    return value


def is_whole(value: Value) -> bool:
    """Whether a value is one array (not a structure that holds some)."""
    return isinstance(value, Array | Argument) or as_array(value) is not None
