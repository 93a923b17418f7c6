"""Folders of recorded modules that a tree's own ``sys.path`` entries do not reach.

A test runner puts the folder of a test file on ``sys.path``, so that ``tests/nets/test_x.py`` is
recorded as the module ``test_x``. Both sides need that folder to import it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from nnx_migrate.digests import digest
from nnx_migrate.evidence.read import Evidence

_NOT_SEARCHED = frozenset(("venv", "node_modules", "__pycache__", "site-packages"))


def folders_of(evidence: Evidence, entries: Sequence[Path]) -> tuple[PurePath, ...]:
    """Folders, relative to a tree's entry, that make every recorded module importable.

    A file is known by its name and its hash, so ``entries`` are those of the recorded tree.
    """
    missing = {
        key: module
        for key, module in evidence.modules.items()
        if not any(_file_of(entry, module) for entry in entries)
    }
    module_names = {evidence.names[key] for key in missing}
    found: dict[PurePath, None] = {}
    for entry in entries if missing else ():
        for file in _files(entry, module_names):
            module = missing.get(digest(file.read_bytes()))
            folder = _folder(file.relative_to(entry), module) if module is not None else None
            if folder is not None:
                found[folder] = None
    return tuple(sorted(found))


def with_folders(entries: Sequence[Path], folders: Sequence[PurePath]) -> tuple[Path, ...]:
    """A tree's entries, and after them those folders that it has."""
    more = [entry / folder for entry in entries for folder in folders]
    return (*entries, *(path for path in more if path.is_dir()))


def _file_of(entry: Path, module: str) -> bool:
    """Whether a module is found from an entry."""
    path = entry.joinpath(*module.split("."))
    return path.with_name(f"{path.name}.py").is_file() or (path / "__init__.py").is_file()


def _folder(file: PurePath, module: str) -> PurePath | None:
    """Where a file's module is imported from; None when its path does not end like its name."""
    parts = file.with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    names = tuple(module.split("."))
    return PurePath(*parts[: -len(names)]) if parts[-len(names) :] == names else None


def _files(entry: Path, names: set[str]) -> Iterator[Path]:
    """Files of these names; what an entry links to is its own package."""
    links = [path for path in sorted(entry.iterdir()) if path.is_symlink() and path.is_dir()]
    for top in (entry, *links):
        for folder, below, files in os.walk(top):
            below[:] = sorted(
                name for name in below if name not in _NOT_SEARCHED and not name.startswith(".")
            )
            yield from (Path(folder, name) for name in sorted(names & set(files)))
