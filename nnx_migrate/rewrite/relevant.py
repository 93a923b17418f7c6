"""Which files of a project can have to do with Flax: by their letters, before anything is parsed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nnx_migrate.source.files import SourceText
from nnx_migrate.source.named_imports import GIVERS
from nnx_migrate.source.roots import imports

_ALL = 500  # projects up to this many files are read whole

# A class that may be a Linen module, by the look of its bases.
_MODULE_CLASS = re.compile(r"^class (\w+)\([^)]*(?:Module|Layer|Block|Base|Net)\w*\b", re.MULTILINE)
_FLAX_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:flax|nnx_migrate)\b", re.MULTILINE)
_LOADERS = (
    *("import_module", "__import__", "module_from_spec", "load_source", "load_module"),
    *("resolve_name", "locate", "run_path", "run_module", "sys.modules", "from sys import"),
)
_LOADS = re.compile(rf"\b(?:{'|'.join(map(re.escape, _LOADERS))})\b")
# Packages whose functions give what a path of names leads to.
_GIVING = sorted({one.partition(".")[0] for one in GIVERS} - sys.stdlib_module_names)
# Each begins with letters, which are found many times faster than the beginning of a line.
_GIVES = tuple(re.compile(rf"{word}[ \t]+(?:{'|'.join(_GIVING)})\b") for word in ("from", "import"))
_DECORATOR = re.compile(r"^@(?:\w+\.)*(\w+)", re.MULTILINE)  # of top-level statements
_FUNCTION = re.compile(r"\ndef (\w+)")
_WORD = re.compile(r"[\w.]+")


def is_read_whole(sources: list[SourceText]) -> bool:
    """Whether a project is so small that every file of it counts."""
    return len(sources) <= _ALL


def relevant(sources: list[SourceText]) -> Iterable[SourceText]:
    """Files that name Flax, those that import such a file or a class of one, and its decorators.

    A file that imports modules by their names may take any class from them. A decorator is looked
    for where a function of its name is defined or handed on by a package.
    """
    if is_read_whole(sources):
        return sources
    chosen: list[SourceText] = []
    rest: list[SourceText] = []
    for source in sources:
        (chosen if _is_chosen(source.text) else rest).append(source)
    wanted = _wanted([source for source in chosen if _FLAX_IMPORT.search(source.text)])
    return [*chosen, *(source for source in rest if _is_needed(source, wanted))]


@dataclass(frozen=True)
class _Wanted:
    """Modules that may define Linen classes, as files and as imports may call them, and names."""

    files: frozenset[str]  # without ``.py`` or ``/__init__.py``, with slashes
    modules: frozenset[str]  # every end of their dotted names
    classes: frozenset[str]
    decorators: frozenset[str]


def _wanted(sources: list[SourceText]) -> _Wanted:
    classes = {source.path: _MODULE_CLASS.findall(source.text) for source in sources}
    files = frozenset(_module(path) for path, names in classes.items() if names)
    return _Wanted(
        files,
        frozenset(end for file in files for end in _ends(file)),
        frozenset(name for names in classes.values() for name in names),
        frozenset(name for source in sources for name in _DECORATOR.findall(source.text)),
    )


def _module(path: Path) -> str:
    module = path.parent if path.name == "__init__.py" else path.with_suffix("")
    return module.as_posix()


def _ends(file: str) -> Iterable[str]:
    """``a.b.c``, ``b.c`` and ``c``."""
    parts = [part for part in file.split("/") if part]
    return (".".join(parts[start:]) for start in range(len(parts)))


def _is_chosen(text: str) -> bool:
    names_flax = "flax" in text or "nnx_migrate.linen" in text or "nnx_migrate import linen" in text
    # Letters are found many times faster than words.
    loads = any(one in text for one in _LOADERS) and bool(_LOADS.search(text))
    return names_flax or loads or "entry_points" in text or any(one.search(text) for one in _GIVES)


def _is_needed(source: SourceText, wanted: _Wanted) -> bool:
    words: set[str] = set()
    for module, listed in imports(source.text):
        names = _WORD.findall(listed)
        words.update(names)
        if _is_wanted(source, module, names, wanted):
            return True
    if source.path.name == "__init__.py" and not words.isdisjoint(wanted.decorators):
        return True
    return not wanted.decorators.isdisjoint(_FUNCTION.findall(f"\n{source.text}"))


def _is_wanted(source: SourceText, module: str, names: list[str], wanted: _Wanted) -> bool:
    """Whether an import statement may take something from a wanted module."""
    if module.startswith("."):
        plain = module.lstrip(".")
        folder = source.path.as_posix().rsplit("/", len(module) - len(plain))[0]
        file = f"{folder}/{plain.replace('.', '/')}" if plain else folder
        found = file in wanted.files or any(f"{file}/{name}" in wanted.files for name in names)
    elif module:
        found = module in wanted.modules or any(f"{module}.{n}" in wanted.modules for n in names)
    else:
        found = not wanted.modules.isdisjoint(names)
    if module.partition(".")[0] in sys.stdlib_module_names:
        return found
    return found or not wanted.classes.isdisjoint(names)
