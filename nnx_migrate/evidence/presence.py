"""Which condition over fields and inputs tells the instances that build a submodule from others.

Every trace of a class either built at a place or did not: as recorded, and with one number made two
and three times as large or one flag flipped. A condition is an answer only when it holds in exactly
the traces that built, and when it is the only one of its kind that does.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

Facts = Mapping[str, Any]  # text of a field or axis -> number, truth value, string, or None

_MOST_PAIRED = 40  # numbers beyond this are not compared with one another
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "!=": operator.ne,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Outcome:
    """One trace: what it was called with, and whether it built at the place."""

    instance: int
    changed: frozenset[str]
    facts: Facts
    built: bool


@dataclass(frozen=True)
class Presence:
    """How often a place built, over recorded instances, and the condition that tells when.

    ``condition`` is Python over ``self.<field>`` and ``<argument>.shape[<axis>]``, or None with the
    ``reason``; ``alternatives`` tell the same traces apart.
    """

    built: int
    instances: int
    traces: int
    condition: str | None = None
    alternatives: tuple[str, ...] = ()
    reason: str = ""


def presence_of(outcomes: Sequence[Outcome]) -> Presence | None:
    """When a place builds; None when every recorded instance builds there."""
    recorded = [one for one in outcomes if not one.changed]
    built = sum(one.built for one in recorded)
    count = (built, len(recorded), len(outcomes))
    if built == len(recorded):
        return None
    if not built:
        return Presence(*count, reason="it was only built with changed fields or inputs")
    found = list(dict.fromkeys(_conditions(outcomes)))
    if not found:
        return Presence(*count, reason="no condition over fields and inputs fits")
    best = [text for text in found if _rank(text) == _rank(found[0])]
    if len(best) > 1:
        return Presence(*count, None, tuple(found), f"{' and '.join(best[:3])} fit alike")
    return Presence(*count, found[0], tuple(found[1:]))


def _rank(text: str) -> tuple[int, int]:
    """The class's own fields before inputs; one source before two."""
    names = len(
        {ast.unparse(one) for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Attribute)}
    )
    return text.count(".shape["), names


def _conditions(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Conditions that hold in exactly the outcomes that built, the best first."""
    shared = set.intersection(*(set(one.facts) for one in outcomes))
    names = sorted(shared)
    single = [text for name in names for text in _of_one(name, outcomes)]
    if single:
        yield from sorted(single, key=_rank)
        return
    numbers = [name for name in names if _is_number(name, outcomes)]
    if len(numbers) <= _MOST_PAIRED:
        yield from sorted(_of_two(numbers, outcomes), key=_rank)


def _of_one(name: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Conditions on a single field or axis."""
    with_it = {_key(one.facts[name]) for one in outcomes if one.built}
    without = {_key(one.facts[name]) for one in outcomes if not one.built}
    if with_it & without:
        return
    values, others = [one[1] for one in with_it], [one[1] for one in without]
    every = [*values, *others]
    if values == [None]:
        yield f"{name} is None"
    elif others == [None]:
        yield f"{name} is not None"
    elif all(isinstance(value, bool) for value in every):
        yield name if values == [True] else f"not {name}"
    elif all(isinstance(value, str) for value in every):
        yield from _of_texts(name, values, others)
    elif all(_whole(value) for value in every):
        yield from _of_numbers(name, values, others)


def _of_texts(name: str, values: list[Any], others: list[Any]) -> Iterator[str]:
    if len(values) == 1:
        yield f"{name} == {values[0]!r}"
    if len(others) == 1:
        yield f"{name} != {others[0]!r}"


def _of_numbers(name: str, values: list[Any], others: list[Any]) -> Iterator[str]:
    """A threshold only where nothing lies between: else any number in between would do."""
    if max(others) + 1 == min(values):
        yield f"{name} > {max(others)}"
    elif max(values) + 1 == min(others):
        yield f"{name} < {min(others)}"
    elif len(values) == 1 and min(others) < values[0] < max(others):
        yield f"{name} == {values[0]}"
    elif len(others) == 1 and min(values) < others[0] < max(values):
        yield f"{name} != {others[0]}"


def _of_two(names: Sequence[str], outcomes: Sequence[Outcome]) -> Iterator[str]:
    for one, two in permutations(names, 2):
        for sign, holds in _COMPARED.items():
            if sign in ("!=", "==") and _rank_of_name(one) > _rank_of_name(two):
                continue  # the same condition the other way round
            if all(
                holds(outcome.facts[one], outcome.facts[two]) == outcome.built
                for outcome in outcomes
            ):
                yield f"{one} {sign} {two}"


def _rank_of_name(name: str) -> tuple[bool, str]:
    return name.startswith("self."), name


def _is_number(name: str, outcomes: Sequence[Outcome]) -> bool:
    return all(_whole(one.facts[name]) for one in outcomes)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _key(value: Any) -> tuple[type, Any]:
    """Values of different types are different: 1 is not True."""
    return type(value), value
