"""Read the migration map that ``rewrite --map FILE`` wrote (JSON, ``"schema": 1``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from nnx_migrate.json_values import (
    as_list,
    as_object,
    as_text,
    as_texts,
    as_texts_by_name,
    text_of,
    unlike,
)
from nnx_migrate.model import ClassMap, MappedFile, MigrationMap, SizeArgument

if TYPE_CHECKING:
    from nnx_migrate.parity.instantiation.calls import Call


class BadMap(ValueError):
    """The file is no migration map; the message is one line for the user."""


def load_map(path: Path) -> MigrationMap:
    """Read a migration map. Raises :class:`BadMap` when the file is missing or malformed."""
    try:
        data = json.loads(text_of(path))
    except OSError as error:
        raise BadMap(f"map {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise BadMap(f"map {path}: not JSON ({error})") from error
    except RecursionError:
        raise BadMap(f"map {path}: not a migration map: nested too deeply") from None
    if not isinstance(data, dict) or data.get("schema") != 1:
        raise BadMap(f'map {path}: expected a migration map with "schema": 1')
    try:
        classes = tuple(_class_map(entry) for entry in as_list(data["classes"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadMap(f"map {path}: malformed class entry ({error!r})") from error
    try:
        files = tuple(map(_mapped_file, as_list(data.get("files", []))))
    except (KeyError, TypeError, ValueError) as error:
        raise BadMap(f"map {path}: malformed file entry ({error!r})") from error
    for one in files:
        for name in (one.path, *one.classes):
            if not _stays_inside(name, one):
                raise BadMap(
                    f"map {path}: expected files inside of the tree that rewrite read, found {name!r}, "
                    "which leads out of it: pass the map as rewrite wrote it"
                )
    return MigrationMap(classes, files)


def _stays_inside(name: str, file: MappedFile) -> bool:
    """Whether a path of a map, or a class that a file is looked for by, names nothing elsewhere."""
    if name != file.path:
        return "/" not in name and "\0" not in name
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\0" not in name


def _mapped_file(entry: Any) -> MappedFile:
    as_object(entry)
    classes = as_texts(entry["classes"])
    return MappedFile(
        as_text(entry["path"]), classes, as_text(entry["before"]), as_text(entry["after"])
    )


def _class_map(entry: Any) -> ClassMap:
    as_object(entry)
    return ClassMap(
        linen=as_text(entry["linen"]),
        nnx=as_text(entry["nnx"]),
        fields=as_texts_by_name(entry.get("fields", {})),
        size_arguments=tuple(
            _size_argument(one) for one in as_list(entry.get("size_arguments", []))
        ),
        attributes=as_texts_by_name(entry.get("attributes", {})),
        rng_streams=as_texts(entry.get("rng_streams", [])),
    )


def _size_argument(entry: Any) -> SizeArgument:
    size = SizeArgument(**entry)
    for one in fields(size):
        value, kinds = getattr(size, one.name), _KINDS[str(one.type)]
        if not isinstance(value, kinds) or (isinstance(value, bool) and int in kinds):
            raise unlike(f"{one.type} as {one.name}", value)
    return size


# The annotations of a size argument, as the source spells them.
_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
    "bool": (bool,),
    "bool | None": (bool, type(None)),
}


def class_map_of(maps: Mapping[str, ClassMap], linen_class: str) -> ClassMap | None:
    """Return the entry of a class, also of one whose package presents it as its own.

    Such a class says that its module is ``package`` while the map knows ``package.module``: it is
    the only class of its name below that package.
    """
    if linen_class in maps:
        return maps[linen_class]
    package, _, name = linen_class.rpartition(".")
    inside = [one for key, one in maps.items() if key.startswith(f"{package}.")]
    same = [one for one in inside if one.linen.rpartition(".")[2] == name]
    return same[0] if len(same) == 1 else None


def path_map_of(migration_map: MigrationMap, calls: Sequence[Call]) -> dict[str, str]:
    """Return Linen scope path -> NNX attribute path wherever the map says that they differ.

    ``calls`` tells which class stands at which scope path; both paths are slash-separated and a
    path stands for everything below it.
    """
    maps = {entry.linen: entry for entry in migration_map.classes}
    nnx_paths: dict[str, str] = {}
    for path, class_name in sorted({(call.path, call.class_name) for call in calls}):
        here = "/".join(path)
        entry = class_map_of(maps, class_name)
        for scope, attribute in entry.attributes.items() if entry else ():
            if scope.replace(".", "/") == attribute.replace(".", "/"):
                continue
            old = _join(here, scope.replace(".", "/"))
            nnx_paths[old] = _join(_nnx_path(here, nnx_paths), attribute.replace(".", "/"))
    return nnx_paths


def _nnx_path(path: str, nnx_paths: dict[str, str]) -> str:
    """Return where a scope path lies in NNX; the longest prefix that moved decides."""
    for old in sorted(nnx_paths, key=len, reverse=True):
        if path == old or path.startswith(old + "/"):
            return nnx_paths[old] + path[len(old) :]
    return path


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
