"""Read an evidence file: what was seen of a class, and which expression a size is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from nnx_migrate.evidence.observations import ClassKey, Instance, Place
from nnx_migrate.evidence.schema import EvidenceError, connect
from nnx_migrate.evidence.stored_values import as_arguments, as_changes, as_shapes, encoded_value
from nnx_migrate.evidence.values import Shape
from nnx_migrate.json_values import as_texts, as_texts_by_name


@dataclass(frozen=True)
class RecordedSize:
    """One axis of one call argument of what a site builds.

    ``expression`` is Python over ``self.<field>``, ``<argument>.shape[<axis>]`` and ``index``, or
    None with the ``reason``. ``alternatives`` fit as well: they only ever moved together.
    """

    expression: str | None
    alternatives: tuple[str, ...]
    reason: str
    instances: int
    traces: int


@dataclass(frozen=True)
class Sighting:
    """One call of what a site builds, with everything its sizes may depend on."""

    instance: int
    changes: Mapping[str, int | float]
    site: Place
    ordinal: int
    below: str
    method: str
    shapes: tuple[tuple[str, Shape], ...]


SizeKey = tuple[Place, str, str, str, int]  # site, below, method, argument, axis


@dataclass(frozen=True)
class RecordedClass:
    """Everything about one class statement."""

    key: ClassKey
    depends: tuple[str, ...]
    instances: Mapping[int, Instance]
    sizes: Mapping[SizeKey, RecordedSize]
    sightings: tuple[Sighting, ...]
    failures: Mapping[int, str] = field(default_factory=dict)  # instances that cannot run alone

    def seen_by(self, site: Place) -> int:
        """How many of the traced instances built something at a site."""
        return len({one.instance for one in self.sightings if one.site == site and not one.changes})

    @property
    def trace_count(self) -> int:
        """How many instances were traced."""
        return len({one.instance for one in self.sightings if not one.changes})


@dataclass(frozen=True)
class Evidence:
    """A whole evidence file."""

    path: Path
    classes: tuple[RecordedClass, ...]
    modules: Mapping[str, str]  # file hash -> import name
    names: Mapping[str, str]  # file hash -> file name
    notes: tuple[str, ...] = field(default=())


def load(path: Path) -> Evidence:
    """Read an evidence file.

    Raises:
        EvidenceError: missing, not an evidence file, or empty.
    """
    with closing(connect(path)) as connection:
        try:
            files = connection.execute("SELECT hash, module, name FROM files").fetchall()
            keys = connection.execute("SELECT id, hash, module, qualname FROM classes").fetchall()
            classes = tuple(_class(connection, id, ClassKey(*key)) for id, *key in keys)
            notes = tuple(row[0] for row in connection.execute("SELECT text FROM notes"))
        except (sqlite3.Error, ValueError, KeyError, TypeError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise EvidenceError(f"{path}: damaged: {reason}; record it again") from error
    if not classes:
        raise EvidenceError(f"{path}: no Linen call was recorded in it")
    modules = {hash: module for hash, module, _ in files}
    return Evidence(path, classes, modules, {hash: name for hash, _, name in files}, notes)


def _class(connection: sqlite3.Connection, class_id: int, key: ClassKey) -> RecordedClass:
    places = {
        row[0]: Place(*row[1:])
        for row in connection.execute(
            "SELECT id, hash, line, column, end_line, end_column FROM sites WHERE class_id = ?",
            (class_id,),
        )
    }
    depends = connection.execute("SELECT hash FROM depends WHERE class_id = ?", (class_id,))
    return RecordedClass(
        key,
        tuple(row[0] for row in depends),
        dict(_instances(connection, class_id, key)),
        dict(_sizes(connection, class_id, places)),
        tuple(_sightings(connection, class_id, places)),
        dict(connection.execute(_FAILURES, (class_id,)).fetchall()),
    )


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(query, (name,)).fetchone() is not None


_FAILURES = """
SELECT instances.id, traces.failure FROM instances
JOIN traces ON traces.instance_id = instances.id
WHERE instances.class_id = ? AND traces.changes = '{}' AND traces.failure IS NOT NULL
"""


def _instances(
    connection: sqlite3.Connection, class_id: int, key: ClassKey
) -> Iterator[tuple[int, Instance]]:
    query = (
        "SELECT id, method, fields, inputs, rngs, collections, mutable, outermost"
        " FROM instances WHERE class_id = ? ORDER BY id"
    )
    around = _surroundings(connection, class_id)
    for id, method, fields, inputs, rngs, collections, mutable, outermost in connection.execute(
        query, (class_id,)
    ):
        argument_kinds, arguments, is_initialization = around.get(id, ("{}", "{}", 1))
        yield (
            id,
            Instance(
                key,
                method,
                encoded_value(json.loads(fields)),
                as_arguments(json.loads(inputs)),
                as_texts(json.loads(rngs)),
                as_texts(json.loads(collections)),
                as_texts(json.loads(mutable)),
                bool(outermost),
                argument_kinds=as_texts_by_name(json.loads(argument_kinds)),
                arguments=as_arguments(json.loads(arguments)),
                is_initialization=bool(is_initialization),
            ),
        )


def _surroundings(connection: sqlite3.Connection, class_id: int) -> dict[int, tuple[str, str, int]]:
    """How inputs were passed, arguments of the function around, whether it was in an ``init``."""
    if not _has_table(connection, "surroundings"):
        return {}
    query = (
        "SELECT instance_id, passed, arguments, initialised FROM surroundings"
        " JOIN instances ON instances.id = instance_id WHERE class_id = ?"
    )
    return {id: tuple(row) for id, *row in connection.execute(query, (class_id,))}


def _sizes(
    connection: sqlite3.Connection, class_id: int, places: Mapping[int, Place]
) -> Iterator[tuple[SizeKey, RecordedSize]]:
    query = (
        "SELECT site_id, below, method, argument, axis, expression, alternatives, reason,"
        " instances, traces FROM sizes WHERE class_id = ?"
    )
    for (
        site,
        below,
        method,
        argument,
        axis,
        text,
        others,
        reason,
        observation_count,
        traces,
    ) in connection.execute(query, (class_id,)):
        key = (places[site], below, method, argument, axis)
        yield (
            key,
            RecordedSize(text, as_texts(json.loads(others)), reason, observation_count, traces),
        )


def _sightings(
    connection: sqlite3.Connection, class_id: int, places: Mapping[int, Place]
) -> Iterator[Sighting]:
    query = (
        "SELECT instances.id, traces.changes, calls.site_id, calls.ordinal, calls.below,"
        " calls.method, calls.shapes FROM instances"
        " JOIN traces ON traces.instance_id = instances.id"
        " JOIN calls ON calls.trace_id = traces.id"
        " WHERE instances.class_id = ? AND traces.failure IS NULL ORDER BY traces.id, calls.rowid"
    )
    for instance, changes, site, ordinal, below, method, shapes in connection.execute(
        query, (class_id,)
    ):
        yield Sighting(
            instance,
            as_changes(json.loads(changes)),
            places[site],
            ordinal,
            below,
            method,
            as_shapes(json.loads(shapes)),
        )
