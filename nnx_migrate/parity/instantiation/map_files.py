"""Whether a migration map is of the trees that are compared: by the hashes of the files it is of."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from nnx_migrate.digests import text_digest
from nnx_migrate.model import MappedFile, MigrationMap
from nnx_migrate.parity.instantiation.migration_map import BadMap, class_map_of

UNKNOWN = "map: it has no hashes of files, so whether it is of this tree; write it again"


def digests(content: MigrationMap, roots: Mapping[Path, Path], name: Path) -> dict[str, str]:
    """Hashes of the files of a map that this process has, by their path in the map.

    ``roots`` are this side's entries of ``sys.path`` in their order, each with the directory that
    it stands for.

    Raises:
        BadMap: a file below an entry is a link to one elsewhere.
    """
    found = {one.path: _file_of(one.classes, tuple(roots)) for one in content.files}
    files = {path: file for path, file in found.items() if file}
    for path, file in files.items():
        root = next((roots[entry] for entry in roots if file.is_relative_to(entry)), None)
        if root is not None and not file.resolve().is_relative_to(root):
            raise BadMap(
                f"map {name}: expected files inside of the tree, found {path!r}, a link that leads out "
                f"of it to {file.resolve()}: put the file itself there"
            )
    return {path: text_digest(file.read_bytes()) for path, file in files.items()}


def require_own(
    content: MigrationMap,
    used: Collection[str],
    before: Mapping[str, str],
    after: Mapping[str, str],
    name: Path,
) -> None:
    """Refuse a map that was made from another tree.

    A file is known by what ``rewrite`` read, on the before side, or by what it wrote, on the after
    side: one of the two may have been edited since. Files are those of the classes ``used``; of
    all, where the map has none of these.

    Raises:
        BadMap: naming the file that neither side has as it was.
    """
    files = _files_of(content, used) or content.files
    for one in files:
        if one.path not in before and one.path not in after:
            continue
        if before.get(one.path) != one.before and after.get(one.path) != one.after:
            raise BadMap(
                f"map {name}: expected the map of these trees, found one of another {one.path}: "
                "before= has not what rewrite read, nor after= what it wrote; pass the map of that run"
            )
    if files and not any(one.path in before or one.path in after for one in files):
        raise BadMap(
            f"map {name}: expected the map of these trees, found one of {files[0].path}, which "
            "neither before= nor after= has; pass the map that was written with after="
        )


def _files_of(content: MigrationMap, used: Collection[str]) -> list[MappedFile]:
    maps = {entry.linen: entry for entry in content.classes}
    linen_names = {entry.linen for name in used if (entry := class_map_of(maps, name))}
    return [one for one in content.files if not linen_names.isdisjoint(one.classes)]


def _file_of(classes: Sequence[str], entries: Sequence[Path]) -> Path | None:
    """The file of the module that the classes stand in: as imported, else where it would be."""
    parts = classes[0].split(".") if classes else []
    for count in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:count]))
        places = [entry.joinpath(*parts[:count]) for entry in entries]
        for file in (
            Path(getattr(module, "__file__", None) or ""),
            *(place.with_name(f"{place.name}.py") for place in places),
            *(place / "__init__.py" for place in places),
        ):
            if file.is_file():
                return file
    return None
