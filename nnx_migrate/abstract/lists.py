"""Lists whose length nobody knows, part by part."""

from __future__ import annotations

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.joining import join_all
from nnx_migrate.abstract.values import (
    Choice,
    ConcatenatedList,
    ExtendedList,
    Perhaps,
    RepeatedItem,
    Rounds,
    Sequence,
    Unknown,
    Value,
)


def parts_of(value: Value) -> tuple[Sequence | RepeatedItem | Rounds, ...] | None:
    """The parts of a list, in their order; None for what is no list."""
    match value:
        case Sequence() | RepeatedItem() | Rounds():
            return (value,)
        case ExtendedList(first=first, rest=rest):
            return Sequence(first, is_list=True), rest
        case ConcatenatedList(parts=parts):
            return parts
    return None


def joined_lists(*values: Value) -> Value:
    """Lists one after the other; Unknown where one of them is."""
    found: list[Sequence | RepeatedItem | Rounds] = []
    for value in values:
        parts = parts_of(value)
        if parts is None:
            return Unknown("a list with parts that nobody knows")
        found += [one for one in parts if one != Sequence((), is_list=True)]
    return ConcatenatedList(tuple(found))


def with_perhaps(value: Value) -> Sequence | None:
    """One list for two of which one has some more items: those are `Perhaps`. None for what is no such choice."""
    if isinstance(value, Sequence):
        return value
    match value:
        case Choice(options=(Sequence() as longer, Sequence() as shorter), test=test):
            pass
        case _:
            return None
    if len(longer.items) < len(shorter.items):
        longer, shorter, test = shorter, longer, test and ex.negation(test)
    items: list[Value] = []
    left = list(shorter.items)
    for one in longer.items:
        shared = bool(left) and (one is left[0] or one == left[0])
        items.append(left.pop(0) if shared else Perhaps(one, test))
    return None if left else Sequence(tuple(items), is_list=True)


def alike(value: ConcatenatedList) -> RepeatedItem:
    """A list of parts as one of which each item may be any of theirs."""
    items: list[Value] = []
    for part in value.parts:
        rounds = part.each.item if isinstance(part, Rounds) else part
        items += rounds.items if isinstance(rounds, Sequence) else [rounds]
    items = [one.item if isinstance(one, RepeatedItem) else one for one in items]
    return RepeatedItem(join_all(None, items))
