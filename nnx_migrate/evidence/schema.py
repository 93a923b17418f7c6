"""The tables of an evidence file and how it is opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path

SCHEMA = 1

# One row per source file (by the hash of its bytes), class statement, instance of a class (one set
# of fields and abstract inputs), place that builds a submodule, trace of an instance (as recorded,
# or with some of its sources changed) and solved size. ``surroundings`` holds what an instance met
# around its class. Names of folders are not stored. A file of an earlier copy has no ``surroundings``
# until it is added to.
TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS files (
    hash TEXT PRIMARY KEY, module TEXT NOT NULL, name TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS classes (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL, module TEXT NOT NULL, qualname TEXT NOT NULL,
    UNIQUE (hash, module, qualname)
);
CREATE TABLE IF NOT EXISTS depends (
    class_id INTEGER NOT NULL REFERENCES classes (id), hash TEXT NOT NULL, UNIQUE (class_id, hash)
);
CREATE TABLE IF NOT EXISTS instances (
    id INTEGER PRIMARY KEY, class_id INTEGER NOT NULL REFERENCES classes (id),
    digest TEXT NOT NULL UNIQUE, method TEXT NOT NULL, fields TEXT NOT NULL, inputs TEXT NOT NULL,
    rngs TEXT NOT NULL, collections TEXT NOT NULL, mutable TEXT NOT NULL, outermost INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS sites (
    id INTEGER PRIMARY KEY, class_id INTEGER NOT NULL REFERENCES classes (id), hash TEXT NOT NULL,
    line INTEGER NOT NULL, column INTEGER NOT NULL,
    end_line INTEGER NOT NULL, end_column INTEGER NOT NULL,
    UNIQUE (class_id, hash, line, column, end_line, end_column)
);
CREATE TABLE IF NOT EXISTS traces (
    id INTEGER PRIMARY KEY, instance_id INTEGER NOT NULL REFERENCES instances (id),
    changes TEXT NOT NULL, failure TEXT, UNIQUE (instance_id, changes)
);
CREATE TABLE IF NOT EXISTS calls (
    trace_id INTEGER NOT NULL REFERENCES traces (id), site_id INTEGER NOT NULL REFERENCES sites (id),
    ordinal INTEGER NOT NULL, builds TEXT NOT NULL, path TEXT NOT NULL, below TEXT NOT NULL,
    method TEXT NOT NULL, shapes TEXT NOT NULL, line INTEGER NOT NULL, column INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS calls_of_trace ON calls (trace_id);
CREATE TABLE IF NOT EXISTS sources (
    instance_id INTEGER NOT NULL REFERENCES instances (id), name TEXT NOT NULL,
    value TEXT NOT NULL, role TEXT NOT NULL, tied TEXT NOT NULL, UNIQUE (instance_id, name)
);
CREATE TABLE IF NOT EXISTS sizes (
    class_id INTEGER NOT NULL REFERENCES classes (id), site_id INTEGER NOT NULL,
    below TEXT NOT NULL, method TEXT NOT NULL, argument TEXT NOT NULL, axis INTEGER NOT NULL,
    expression TEXT, alternatives TEXT NOT NULL, reason TEXT NOT NULL,
    instances INTEGER NOT NULL, traces INTEGER NOT NULL,
    UNIQUE (class_id, site_id, below, method, argument, axis)
);
CREATE TABLE IF NOT EXISTS surroundings (
    instance_id INTEGER NOT NULL UNIQUE REFERENCES instances (id), passed TEXT NOT NULL,
    arguments TEXT NOT NULL, initialised INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS notes (class_id INTEGER, text TEXT NOT NULL, UNIQUE (class_id, text));
"""

_PATIENCE = 60.0  # seconds a process waits for another that is writing


class EvidenceError(Exception):
    """The evidence file cannot be used; the message is one line."""


def create(path: Path) -> None:
    """Make an evidence file, or check that the existing one can be added to.

    Raises:
        EvidenceError: what is there is no evidence file of this version, or cannot be written.
    """
    try:
        connection = sqlite3.connect(path, timeout=_PATIENCE)
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
            connection.executescript(TABLES)
            with connection:
                connection.execute(
                    "INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (str(SCHEMA),)
                )
            _check(connection, path)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise EvidenceError(f"{path}: expected an evidence file: {error}") from error


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing evidence file.

    Raises:
        EvidenceError: it is missing, or no evidence file of this version.
    """
    if not path.is_file():
        raise EvidenceError(f"{path}: no such file; make it with `nnx-migrate record -o {path}`")
    try:
        connection = sqlite3.connect(path, timeout=_PATIENCE)
    except sqlite3.Error as error:
        raise EvidenceError(f"{path}: {error}") from error
    try:
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    try:
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    except sqlite3.Error as error:
        raise EvidenceError(f"{path}: expected an evidence file: {error}") from error
    found = row[0] if row else "none"
    if found != str(SCHEMA):
        raise EvidenceError(
            f"{path}: expected evidence of version {SCHEMA}, found {found}; record it again"
        )
