"""From the traces in an evidence file to the sizes of a class."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nnx_migrate.evidence.solve import INDEX, Answer, Observation, solve
from nnx_migrate.evidence.values import dimensions, numbers, opaque_parts


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
    answers = {slot: solve(observations, opaque) for slot, observations in found.items()}
    connection.execute("DELETE FROM sizes WHERE class_id = ?", (class_id,))
    connection.executemany(
        "INSERT INTO sizes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_row(class_id, slot, answers[slot], observations) for slot, observations in found.items()],
    )


def _row(
    class_id: int, slot: Slot, answer: Answer, observations: list[Observation]
) -> tuple[Any, ...]:
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
        len({one.instance for one in observations}),
        len(observations),
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
    repeated_sites = {row[4] for row in rows if row[5] > 0}
    for instance, fields, inputs, changes, site, ordinal, below, method, shapes in rows:
        key = (instance, changes, site, ordinal, below, method)
        if key in first:
            continue
        first.add(key)
        if instance not in bases:
            bases[instance] = _sources(json.loads(fields), json.loads(inputs))
        changed_sources = json.loads(changes)
        sources = {**bases[instance], **changed_sources}
        if site in repeated_sites:
            sources[INDEX] = ordinal
            changed_sources = {**changed_sources, INDEX: ordinal} if ordinal else changed_sources
        for argument, shape in json.loads(shapes):
            for axis, size in enumerate(shape):
                slot = Slot(site, below, method, argument, axis - len(shape))
                yield slot, Observation(instance, frozenset(changed_sources), sources, size)


def _sources(fields: Any, inputs: Any) -> dict[str, Any]:
    return {**dict(numbers(fields, "self")), **dimensions(inputs)}
