"""One evidence file of several: what the cases of a package recorded, for one rewriting of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from nnx_migrate.evidence.observations import Call, Instance, Place, Role, SourceFile, Trace
from nnx_migrate.evidence.read import load
from nnx_migrate.evidence.schema import connect, create
from nnx_migrate.evidence.store import add, finish


def merged(files: Iterable[Path], target: Path) -> Path:
    """Write an evidence file that holds what several hold, with its sizes solved from all."""
    target.unlink(missing_ok=True)
    create(target)
    add(target, _sources(files), [one for file in files for one in _instances(file)])
    finish(target)
    return target


def _sources(files: Iterable[Path]) -> Iterator[SourceFile]:
    for file in files:
        with closing(connect(file)) as connection:
            for row in connection.execute("SELECT hash, module, name FROM files"):
                yield SourceFile(*row)


def _instances(file: Path) -> Iterator[Instance]:
    """Every instance of a file with its traces and roles."""
    evidence = load(file)
    with closing(connect(file)) as connection:
        for cls in evidence.classes:
            for number, instance in cls.instances.items():
                yield replace(
                    instance,
                    traces=tuple(_traces(connection, number)),
                    roles=tuple(_roles(connection, number)),
                    depends=cls.depends,
                )


_TRACES = "SELECT id, changes, failure FROM traces WHERE instance_id = ? ORDER BY id"
_CALLS = """
SELECT sites.hash, sites.line, sites.column, sites.end_line, sites.end_column, calls.ordinal,
       calls.builds, calls.path, calls.below, calls.method, calls.shapes, calls.line, calls.column
FROM calls JOIN sites ON sites.id = calls.site_id WHERE calls.trace_id = ? ORDER BY calls.rowid
"""
_ROLES = "SELECT name, value, role, tied FROM sources WHERE instance_id = ? ORDER BY rowid"


def _traces(connection: sqlite3.Connection, instance: int) -> Iterator[Trace]:
    for number, changes, failure in connection.execute(_TRACES, (instance,)).fetchall():
        yield Trace(json.loads(changes), tuple(_calls(connection, number)), failure)


def _calls(connection: sqlite3.Connection, trace: int) -> Iterator[Call]:
    for *place, ordinal, builds, path, below, method, text, line, column in connection.execute(
        _CALLS, (trace,)
    ):
        shapes = tuple((name, tuple(shape)) for name, shape in json.loads(text))
        yield Call(Place(*place), ordinal, builds, path, below, method, shapes, line, column)


def _roles(connection: sqlite3.Connection, instance: int) -> Iterator[Role]:
    for name, value, role, tied in connection.execute(_ROLES, (instance,)):
        yield Role(name, json.loads(value), role, tuple(json.loads(tied)))
