"""The files that a run of ``parity`` reads, by hash. Loads no jax."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from nnx_migrate import fixtures
from nnx_migrate.digests import digest, text_digest
from nnx_migrate.parity.certificate.data import Digest, Sources
from nnx_migrate.parity.files.trees import BadTree, open_trees
from nnx_migrate.parity.models.registry import ALIASES, MODELS
from nnx_migrate.parity.words import BadWord, is_path

# Source code and settings, not what programs write; git may check them out with other line ends.
SUFFIXES = (".py", ".yaml", ".yml", ".toml")
_NOT_SEARCHED = ("__pycache__", "node_modules", "site-packages")
_SIDES = {"linen": "before", "nnx": "after", "lazy": "after"}


def sources_of(values: Mapping[str, str]) -> Sources:
    """Hashes of the files that the words of a run name, and of both sides' source code.

    Of a case's trees that is every file that ends in one of ``SUFFIXES``; beside the case file, which both sides
    may import from, the Python files and packages. Data that models read is not among them.

    Raises:
        BadWord: a file or tree that the words name is not there.
    """
    if "model" in values:
        name = values["model"]
        model = MODELS.get(ALIASES.get(name, name))
        own = {} if model is None else _fixtures(model.family, values.get("form", "explicit"))
        return {**own, **_named(values, "rules")}
    return {**_trees(values), **_named(values, "map")}


def changes(before: Sources, after: Sources) -> tuple[str, ...]:
    """One line per file that is another, or only on one side: ``after: pkg/models.py: changed``."""
    lines = []
    for group in dict.fromkeys((*before, *after)):
        old, new = before.get(group, {}), after.get(group, {})
        for path in sorted({*old, *new}):
            if old.get(path) != new.get(path):
                how = "new" if path not in old else "missing" if path not in new else "changed"
                lines.append(f"{group}: {path}: {how}")
    return tuple(lines)


def _fixtures(family: str, form: str) -> dict[str, dict[str, Digest]]:
    """What a built-in model consists of: each side's folder, and what both read."""
    root = fixtures.path()
    after = "nnx" if form == "explicit" else form
    groups: dict[str, dict[str, Digest]] = {"case": {}, "before": {}, "after": {}}
    for path, found in _hashes(root, _files(root / family)).items():
        folder = path.split("/")[1]
        if folder not in _SIDES:
            groups["case"][path] = found
        elif folder in ("linen", after):
            groups[_SIDES[folder]][path] = found
    return groups


def _trees(values: Mapping[str, str]) -> dict[str, dict[str, Digest]]:
    case = Path(values["case"])
    if not case.is_file():
        raise BadWord(f"case={case}: no such file in {Path.cwd()}")
    beside = case.resolve().parent
    groups = {"case": _hashes(beside, {case.resolve(), *_importable(beside)})}
    try:
        with open_trees(case, values.get("before"), values.get("after")) as trees:
            for side, root in (("before", trees.before_root), ("after", trees.after_root)):
                if root is not None:
                    groups[side] = _hashes(root, _files(root))
    except BadTree as error:
        raise BadWord(str(error)) from error
    return groups


def _named(values: Mapping[str, str], key: str) -> dict[str, dict[str, Digest]]:
    """The file that a word names; a name of our own rules is none."""
    if key not in values or not (key == "map" or is_path(values[key])):
        return {}
    path = Path(values[key])
    if not path.is_file():
        raise BadWord(f"{key}={path}: no such file in {Path.cwd()}")
    return {key: {values[key]: Digest(digest(path.read_bytes()))}}


def _importable(folder: Path) -> Iterator[Path]:
    """Modules and packages right below a folder; other folders may be anything."""
    for one in sorted(folder.iterdir()):
        if one.suffix == ".py" and one.is_file():
            yield one
        elif (one / "__init__.py").is_file() and not one.name.startswith("."):
            yield from _files(one)


def _files(root: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if _may_hold_sources(Path(folder, name))]
        yield from (Path(folder, name) for name in names if name.endswith(SUFFIXES))


def _may_hold_sources(folder: Path) -> bool:
    is_hidden = folder.name.startswith(".") or folder.name in _NOT_SEARCHED
    return not is_hidden and not (folder / "pyvenv.cfg").is_file()


def _hashes(root: Path, files: Iterable[Path]) -> dict[str, Digest]:
    """Hashes by path from the root; a link that leads nowhere is no file."""
    return {
        path.relative_to(root).as_posix(): Digest(text_digest(path.read_bytes()))
        for path in sorted(files)
        if path.is_file()
    }
