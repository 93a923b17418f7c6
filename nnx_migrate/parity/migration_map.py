"""Read the migration map that ``rewrite --map FILE`` wrote (JSON, ``"schema": 1``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nnx_migrate.model import ClassMap, MigrationMap, SizeArgument


class BadMap(ValueError):
    """The file is no migration map; the message is one line for the user."""


def load_map(path: Path) -> MigrationMap:
    """Read a migration map. Raises :class:`BadMap` when the file is missing or malformed."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadMap(f"map {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise BadMap(f"map {path}: not JSON ({error})") from error
    if not isinstance(data, dict) or data.get("schema") != 1:
        raise BadMap(f'map {path}: expected a migration map with "schema": 1')
    try:
        return MigrationMap(classes=tuple(_class_map(entry) for entry in data["classes"]))
    except (KeyError, TypeError) as error:
        raise BadMap(f"map {path}: malformed class entry ({error!r})") from error


def _class_map(entry: dict[str, Any]) -> ClassMap:
    sizes = tuple(SizeArgument(**size) for size in entry.get("size_arguments", ()))
    return ClassMap(
        linen=entry["linen"],
        nnx=entry["nnx"],
        fields=dict(entry.get("fields", {})),
        size_arguments=sizes,
        attributes=dict(entry.get("attributes", {})),
        rng_streams=tuple(entry.get("rng_streams", ())),
    )
