"""Add to an evidence file: several processes and several runs merge, nothing is stored twice."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from nnx_migrate.evidence.observations import ClassKey, Instance, Place, SourceFile, Trace
from nnx_migrate.evidence.schema import connect
from nnx_migrate.evidence.solutions import solve_class


def add(
    path: Path,
    files: Iterable[SourceFile],
    instances: Sequence[Instance],
    notes: Iterable[str] = (),
) -> None:
    """Write what was seen and solve the sizes of the classes it belongs to again.

    One transaction: a process that is killed leaves the file as it was. Others wait.
    """
    with closing(connect(path)) as connection:
        connection.isolation_level = None
        connection.execute("BEGIN IMMEDIATE")
        try:
            for file in files:
                connection.execute(
                    "INSERT OR IGNORE INTO files VALUES (?, ?, ?)",
                    (file.hash, file.module, file.name),
                )
            connection.executemany(
                "INSERT OR IGNORE INTO notes VALUES (NULL, ?)", [(note,) for note in notes]
            )
            class_ids = {_add_instance(connection, one) for one in instances}
            for class_id in sorted(class_ids - {None}, key=str):
                solve_class(connection, int(str(class_id)))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def traced_digests(path: Path) -> frozenset[str]:
    """Digests of the instances that some process has traced already."""
    query = "SELECT DISTINCT digest FROM instances JOIN traces ON instance_id = instances.id"
    with closing(connect(path)) as connection:
        return frozenset(row[0] for row in connection.execute(query))


def finish(path: Path) -> None:
    """Put everything into the one file; run when no process writes any more."""
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()


def counts(path: Path) -> dict[str, int]:
    """How many classes, instances and traces a file holds."""
    with closing(connect(path)) as connection:
        return {
            table: int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])
            for table in ("classes", "instances", "traces")
        }


def _add_instance(connection: sqlite3.Connection, one: Instance) -> int | None:
    """Add an instance; its class's id when that is now to be solved again."""
    class_id = _class_id(connection, one.cls)
    connection.execute(
        "INSERT OR IGNORE INTO instances (class_id, digest, method, fields, inputs, rngs,"
        " collections, mutable, outermost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            class_id,
            one.digest,
            one.method,
            json.dumps(one.fields),
            json.dumps(dict(one.inputs)),
            json.dumps(one.rngs),
            json.dumps(one.collections),
            json.dumps(one.mutable),
            int(one.outermost),
        ),
    )
    row = connection.execute("SELECT id FROM instances WHERE digest = ?", (one.digest,)).fetchone()
    instance_id = int(row[0])
    if one.outermost:
        connection.execute("UPDATE instances SET outermost = 1 WHERE id = ?", (instance_id,))
    if one.mutable:
        connection.execute(
            "UPDATE instances SET mutable = ? WHERE id = ? AND mutable = '[]'",
            (json.dumps(one.mutable), instance_id),
        )
    connection.execute(
        "INSERT INTO surroundings VALUES (?, ?, ?, ?) ON CONFLICT (instance_id)"
        " DO UPDATE SET initialised = max(initialised, excluded.initialised)",
        (
            instance_id,
            json.dumps(dict(one.argument_kinds)),
            json.dumps(dict(one.arguments)),
            int(one.is_initialization),
        ),
    )
    connection.executemany(
        "INSERT OR IGNORE INTO depends VALUES (?, ?)", [(class_id, hash) for hash in one.depends]
    )
    connection.executemany(
        "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?)",
        [
            (instance_id, role.name, json.dumps(role.value), role.role, json.dumps(role.partners))
            for role in one.roles
        ],
    )
    additions = [_add_trace(connection, class_id, instance_id, trace) for trace in one.traces]
    return class_id if any(additions) else None


def _class_id(connection: sqlite3.Connection, cls: ClassKey) -> int:
    values = (cls.hash, cls.module, cls.qualname)
    connection.execute(
        "INSERT OR IGNORE INTO classes (hash, module, qualname) VALUES (?, ?, ?)", values
    )
    query = "SELECT id FROM classes WHERE hash = ? AND module = ? AND qualname = ?"
    return int(connection.execute(query, values).fetchone()[0])


def _site_id(connection: sqlite3.Connection, class_id: int, place: Place) -> int:
    values = (
        class_id,
        place.hash,
        place.line,
        place.column,
        place.end_line,
        place.end_column,
    )
    connection.execute(
        "INSERT OR IGNORE INTO sites (class_id, hash, line, column, end_line, end_column)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        values,
    )
    query = (
        "SELECT id FROM sites WHERE class_id = ? AND hash = ? AND line = ? AND column = ?"
        " AND end_line = ? AND end_column = ?"
    )
    return int(connection.execute(query, values).fetchone()[0])


def _add_trace(
    connection: sqlite3.Connection, class_id: int, instance_id: int, trace: Trace
) -> bool:
    """Add a trace unless the instance has one with the same changes."""
    done = connection.execute(
        "INSERT OR IGNORE INTO traces (instance_id, changes, failure) VALUES (?, ?, ?)",
        (instance_id, json.dumps(dict(trace.changes), sort_keys=True), trace.failure),
    )
    if done.rowcount == 0:
        return False
    connection.executemany(
        "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                done.lastrowid,
                _site_id(connection, class_id, call.site),
                call.ordinal,
                call.builds,
                call.path,
                call.below,
                call.method,
                json.dumps(call.shapes),
                call.line,
                call.column,
            )
            for call in trace.calls
        ],
    )
    return True
