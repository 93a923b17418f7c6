"""Trace an instance again with its sources changed one at a time.

A source is a number among the fields or an axis of an input. Each is made two and three times as
large; where that alone fails, together with others of the same value; booleans are flipped. Pairs
that move the same size are changed together as well, so that ``a * b`` and ``2 * a + 3 * b`` differ.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from nnx_migrate.evidence.observations import Call, Number, Role, Trace
from nnx_migrate.record.change import with_changes
from nnx_migrate.record.source_files import SourceFiles
from nnx_migrate.record.trace import Subject, trace

_MOST_PAIRS = 24
_FROM_ZERO = {2: 2, 3: 3}


@dataclass
class Probing:
    """The traces of one instance so far."""

    subject: Subject
    files: SourceFiles
    sources: Mapping[str, Number]
    deadline: float
    base: tuple[Call, ...] = ()
    traces: list[Trace] = field(default_factory=list)
    roles: dict[str, Role] = field(default_factory=dict)

    def attempt(self, changes: Mapping[str, Number]) -> tuple[Call, ...] | None:
        """Trace with some sources changed; None when the class's code refuses them."""
        if time.monotonic() > self.deadline:
            return None
        try:
            calls = trace(_with_changes(self.subject, changes), self.files)
        except Exception as error:  # noqa: BLE001 - the user's code may refuse in any way
            self.traces.append(Trace(changes, failure=type(error).__name__))
            return None
        self.traces.append(Trace(changes, calls))
        return calls


def probe(probing: Probing) -> None:
    """Trace the instance as recorded and then with every source changed.

    Raises what the class's code raises when nothing is changed.
    """
    probing.base = trace(probing.subject, probing.files)
    probing.traces.append(Trace({}, probing.base))
    if not probing.base:
        return
    for name, value in probing.sources.items():
        if isinstance(value, bool):
            probing.attempt({name: not value})
        elif value >= 0:
            probing.roles[name] = _role(probing, name, value)
    for one, two in _pairs(probing):
        first, second = _group(probing, one, 2), _group(probing, two, 3)
        probing.attempt({**first, **second})


def _role(probing: Probing, name: str, value: Number) -> Role:
    """Change one source, alone or with those it is tied to."""
    calls = probing.attempt({name: _scale(value, 2)})
    if calls is not None:
        probing.attempt({name: _scale(value, 3)})
        same = _structure(calls) == _structure(probing.base)
        return Role(name, value, "free" if same else "structural")
    for partners in _ties(probing, name, value):
        changes = {one: _scale(probing.sources[one], 2) for one in (name, *partners)}
        if probing.attempt(changes) is not None:
            probing.attempt({one: _scale(probing.sources[one], 3) for one in (name, *partners)})
            return Role(name, value, "tied", partners)
    return Role(name, value, "stuck")


def _scale(value: Number, factor: int) -> Number:
    return value * factor if value else _FROM_ZERO[factor]


def _ties(probing: Probing, name: str, value: Number) -> Iterator[tuple[str, ...]]:
    """Groups that a source may have to move with: equals first, then capacities above it."""
    numbers = {
        one: other
        for one, other in probing.sources.items()
        if one != name and not isinstance(other, bool) and other > 1
    }
    if value <= 1:
        return
    equal = tuple(one for one, other in numbers.items() if other == value)
    if len(equal) > 1:
        yield equal
    for one in equal:
        yield (one,)
    larger = [one for one, other in numbers.items() if other > value]
    for one in larger[:4]:
        yield (one,)
    if len(larger) > 1 or equal:
        yield (*equal, *larger)
    multiples = tuple(one for one, other in numbers.items() if other % value == 0)
    if multiples and set(multiples) != {*equal, *larger}:
        yield multiples


def _structure(calls: tuple[Call, ...]) -> list[tuple[Any, ...]]:
    return [(call.site, call.ordinal, call.below, call.method) for call in calls]


def _pairs(probing: Probing) -> list[tuple[str, str]]:
    """Sources that each move some size of the same submodule."""
    base = _sizes(probing.base)
    movers: dict[tuple[Any, ...], list[str]] = {}
    for made in probing.traces:
        names = list(made.changes)
        if made.failure is not None or not names or names[0] not in probing.roles:
            continue
        for slot, size in _sizes(made.calls).items():
            if slot in base and base[slot] != size:
                found = movers.setdefault(slot, [])
                if names[0] not in found:
                    found.append(names[0])
    pairs = {
        pair: None
        for names in movers.values()
        if 1 < len(names) <= 6
        for pair in combinations(names, 2)
    }
    return list(pairs)[:_MOST_PAIRS]


def _sizes(calls: tuple[Call, ...]) -> dict[tuple[Any, ...], int]:
    return {
        (call.site, call.ordinal, call.below, call.method, argument, axis): size
        for call in reversed(calls)
        for argument, shape in call.shapes
        for axis, size in enumerate(shape)
    }


def _group(probing: Probing, name: str, factor: int) -> dict[str, Number]:
    """A source and those it is tied to, all changed by one factor."""
    names = (name, *probing.roles[name].partners)
    return {one: _scale(probing.sources[one], factor) for one in names}


def _with_changes(subject: Subject, changes: Mapping[str, Number]) -> Subject:
    return Subject(
        subject.cls,
        {
            name: with_changes(value, f"self.{name}", changes)
            for name, value in subject.fields.items()
        },
        subject.method,
        {name: with_changes(value, name, changes) for name, value in subject.arguments.items()},
        subject.rngs,
    )
