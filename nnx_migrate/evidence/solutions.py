"""From the traces in an evidence file to the sizes of a class."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nnx_migrate.evidence.evaluate import Surroundings, Unknown, evaluate
from nnx_migrate.evidence.presence import Outcome, presence_of
from nnx_migrate.evidence.solve import INDEX, Answer, Observation, solve
from nnx_migrate.evidence.values import dimensions, facts, numbers, opaque_parts, replaced

_GIVEN = "given"  # stands for an argument that is not None


@dataclass(frozen=True)
class Slot:
    """One axis of one argument of one call of what a site builds."""

    site: int
    below: str
    method: str
    argument: str
    axis: int  # counted from the end


def solve_class(connection: sqlite3.Connection, class_id: int) -> None:
    """Solve every size of a class from all its traces, and store the answers."""
    found: dict[Slot, list[Observation]] = {}
    for slot, observation in _observations(connection, class_id):
        found.setdefault(slot, []).append(observation)
    opaque = _opaque(connection, class_id)
    answers = {slot: solve(seen, opaque) for slot, seen in found.items()}
    connection.execute("DELETE FROM sizes WHERE class_id = ?", (class_id,))
    connection.executemany(
        "INSERT INTO sizes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_row(class_id, slot, answers[slot], seen) for slot, seen in found.items()],
    )
    connection.execute("DELETE FROM presence WHERE class_id = ?", (class_id,))
    connection.executemany(
        "INSERT INTO presence VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        list(_presence_rows(connection, class_id, answers)),
    )


def _row(class_id: int, slot: Slot, answer: Answer, seen: list[Observation]) -> tuple[Any, ...]:
    return (
        class_id,
        slot.site,
        slot.below,
        slot.method,
        slot.argument,
        slot.axis,
        answer.expression,
        json.dumps(answer.alternatives),
        answer.reason,
        len({one.instance for one in seen}),
        len(seen),
    )


def _opaque(connection: sqlite3.Connection, class_id: int) -> dict[int, str]:
    """By instance, the type of something in its fields or inputs that was not written down."""
    rows = connection.execute(
        "SELECT id, fields, inputs FROM instances WHERE class_id = ?", (class_id,)
    ).fetchall()
    parts = {
        instance: [*opaque_parts(json.loads(fields))]
        + [name for value in json.loads(inputs).values() for name in opaque_parts(value)]
        for instance, fields, inputs in rows
    }
    return {instance: names[0] for instance, names in parts.items() if names}


_CALLS = """
SELECT instances.id, instances.fields, instances.inputs, traces.changes,
       calls.site_id, calls.ordinal, calls.below, calls.method, calls.shapes
FROM instances JOIN traces ON traces.instance_id = instances.id
JOIN calls ON calls.trace_id = traces.id
WHERE instances.class_id = ? AND traces.failure IS NULL
ORDER BY traces.id, calls.rowid
"""


def _observations(
    connection: sqlite3.Connection, class_id: int
) -> Iterator[tuple[Slot, Observation]]:
    """Every axis that was seen; a submodule's parameters take the shapes of its first call."""
    bases: dict[int, dict[str, Any]] = {}
    first: set[tuple[Any, ...]] = set()
    rows = connection.execute(_CALLS, (class_id,)).fetchall()
    repeated = {row[4] for row in rows if row[5] > 0}
    for instance, fields, inputs, changes, site, ordinal, below, method, shapes in rows:
        key = (instance, changes, site, ordinal, below, method)
        if key in first:
            continue
        first.add(key)
        if instance not in bases:
            bases[instance] = _sources(json.loads(fields), json.loads(inputs))
        changed = json.loads(changes)
        sources = {**bases[instance], **changed}
        if site in repeated:
            sources[INDEX] = ordinal
            changed = {**changed, INDEX: ordinal} if ordinal else changed
        for argument, shape in json.loads(shapes):
            for axis, size in enumerate(shape):
                slot = Slot(site, below, method, argument, axis - len(shape))
                yield slot, Observation(instance, frozenset(changed), sources, size)


def _sources(fields: Any, inputs: Any) -> dict[str, Any]:
    return {**dict(numbers(fields, "self")), **dimensions(inputs)}


_TRACES = """
SELECT instances.id, instances.fields, instances.inputs, traces.id, traces.changes
FROM instances JOIN traces ON traces.instance_id = instances.id
WHERE instances.class_id = ? AND traces.failure IS NULL AND instances.method = '__call__'
ORDER BY traces.id
"""
_BUILT = """
SELECT DISTINCT calls.trace_id, calls.site_id FROM calls
JOIN traces ON traces.id = calls.trace_id JOIN instances ON instances.id = traces.instance_id
WHERE instances.class_id = ?
"""


def _presence_rows(
    connection: sqlite3.Connection, class_id: int, answers: Mapping[Slot, Answer]
) -> Iterator[tuple[Any, ...]]:
    """One row per place that some recorded instance builds at and another does not."""
    built = set(connection.execute(_BUILT, (class_id,)).fetchall())
    traces = [
        (instance, trace, json.loads(changes), json.loads(fields), json.loads(inputs))
        for instance, fields, inputs, trace, changes in connection.execute(_TRACES, (class_id,))
    ]
    counted = {trace for _, trace, *_ in traces}
    for site in sorted({site for trace, site in built if trace in counted}):
        if all((trace, site) in built for _, trace, changed, *_ in traces if not changed):
            continue
        sizes = [one.expression for slot, one in answers.items() if slot.site == site]
        texts = sorted({text for text in sizes if text is not None and not text.isdigit()})
        outcomes = [
            Outcome(
                instance, frozenset(changed), _facts(changed, fields, inputs, texts), built_here
            )
            for instance, trace, changed, fields, inputs in traces
            for built_here in ((trace, site) in built,)
        ]
        one = presence_of(outcomes)
        if one is not None:
            counts = (one.built, one.instances, one.traces)
            others = json.dumps(one.alternatives)
            yield (class_id, site, *counts, one.condition, others, one.reason)


def _facts(
    changed: Mapping[str, Any], fields: Any, inputs: Any, sizes: Sequence[str]
) -> dict[str, Any]:
    """What a condition may read: fields, axes, and the sizes that are solved already.

    An array argument is given, whatever it holds.
    """
    fields = replaced(fields, "self", changed)
    inputs = {name: replaced(one, name, changed) for name, one in inputs.items()}
    plain = {path: value for name, one in inputs.items() for path, value in facts(one, name)}
    given = {name: _GIVEN for name in inputs if name not in plain}
    found = {**dict(facts(fields, "self")), **dimensions(inputs), **plain, **given}
    around = Surroundings(fields, inputs, {})
    for text in sizes:
        with suppress(Unknown):  # a size of a loop's round, or of another instance's kind of input
            found.setdefault(text, evaluate(text, around))
    return found
