"""The name under which every file is imported.

A file's import root is the first folder above it that is no package. A folder without
``__init__.py`` may still be one (a namespace package, PEP 420): what the project's own imports call
its files decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from nnx_migrate.source.files import SourceText
from nnx_migrate.source.project import module_name

# In front of the word "import", on its line; Python takes spaces between dots and names.
_BEFORE = re.compile(r"[ \t]*(?:from(?=[ \t.])([\w. \t]+)(?<=[ \t.]))?")
_BEHIND = re.compile(r"(?!\w)[ \t]*(\([^)]*\)|[^\n#]*)")
_NAME = re.compile(r"([A-Za-z_][\w.]*|\*)(?:[ \t]+as[ \t]+(\w+))?")


def imports(text: str) -> Iterator[tuple[str, str]]:
    """Import statements that begin a line: the module of ``from``, or nothing, and what is imported.

    By the letters alone, so that a large project need not be parsed; strings may look like imports.
    """
    at = text.find("import")
    while at >= 0:
        end = at + len("import")
        before = _BEFORE.fullmatch(text, text.rfind("\n", 0, at) + 1, at)
        behind = _BEHIND.match(text, end)
        if before is not None and behind is not None:
            yield "".join((before[1] or "").split()), behind[1]
        at = text.find("import", end)


def bindings(module: str, names: str) -> Iterator[tuple[str, str]]:
    """The names that a statement of `imports` binds in the file, each with the path of what it is.

    >>> [*bindings("flax", "struct, linen as nn"), *bindings("", "flax.linen")]
    [('struct', 'flax.struct'), ('nn', 'flax.linen'), ('flax', 'flax.linen')]
    """
    for name, alias in _NAME.findall(names):
        yield alias or name.partition(".")[0], f"{module}.{name}" if module else name


def import_names(sources: Sequence[SourceText], root: Path) -> dict[int, tuple[str, bool]]:
    """Import name of every file, by ``id`` of its source, and whether it is a package."""
    paths = frozenset(source.path for source in sources)
    tops = {id(source): _top(source.path.parent, paths) for source in sources}
    groups: dict[Path, list[SourceText]] = {}
    for source in sources:
        groups.setdefault(tops[id(source)], []).append(source)
    nested = [top for top in groups if top != root and top.is_relative_to(root)]
    statements = {id(one): tuple(imports(one.text)) for one in sources} if nested else {}
    imported = _import_names(statements.values())
    names: dict[int, tuple[str, bool]] = {}
    visited: set[str] = set()
    shown = (_package_above(one.path, statements[id(one)]) for one in sources if nested)
    packages = {one for one in shown if one is not None}
    found = {}
    for top in nested:
        roots = [_top(one.parent, paths) for one in packages if top.is_relative_to(one)]
        lowest = min(top, *roots, key=lambda folder: len(folder.parts)) if roots else top
        found[top] = _import_root(lowest, groups[top], imported, root)
    for source in sources:
        top = found.get(tops[id(source)], tops[id(source)])
        name, is_package = _name(source.path, top)
        if not name or name in visited:
            name, is_package = _name(source.path, root)
        visited.add(name)
        names[id(source)] = (name, is_package)
    return names


def _top(folder: Path, paths: frozenset[Path]) -> Path:
    """The first folder from ``folder`` up that has no ``__init__.py``."""
    while folder != folder.parent and (
        folder / "__init__.py" in paths or (folder / "__init__.py").exists()
    ):
        folder = folder.parent
    return folder


def _name(path: Path, top: Path) -> tuple[str, bool]:
    try:
        relative = path.relative_to(top).as_posix()
    except ValueError:
        relative = path.as_posix().lstrip("/").replace("../", "")
    return module_name(PurePosixPath(relative))


def _import_root(top: Path, members: list[SourceText], imports: frozenset[str], root: Path) -> Path:
    """The folder from ``top`` up to ``root`` that makes most of the files importable by name."""
    folders = [top if top.is_relative_to(root) else root]
    while folders[-1] != root:
        folders.append(folders[-1].parent)
    hits = [
        sum(1 for one in members if _name(one.path, folder)[0] in imports) for folder in folders
    ]
    return folders[hits.index(max(hits))]


def _package_above(path: Path, statements: Iterable[tuple[str, str]]) -> Path | None:
    """The folder that a file's relative imports show to be a package, with all folders in it.

    ``from ..models import x`` in ``src/lib/train/loop.py`` shows ``src/lib``. What stands beside a file
    (``from . import x``) is found by any name.
    """
    level = max((len(one) - len(one.lstrip(".")) for one, _ in statements), default=0)
    above = path.parents
    return above[level - 1] if 1 < level <= len(above) else None


def _import_names(files: Iterable[Iterable[tuple[str, str]]]) -> frozenset[str]:
    """Dotted names that the absolute imports may mean: of modules, and of what is in them."""
    found: set[str] = set()
    for statements in files:
        for module, names in statements:
            if module[:1] != ".":
                found.add(module)
                found |= {path for _, path in bindings(module, names)}
    return frozenset(found)
