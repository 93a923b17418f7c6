"""Which files of a project can have to do with Flax: by their letters, before anything is parsed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from nnx_migrate.source.files import SourceText
from nnx_migrate.source.named_imports import GIVERS
from nnx_migrate.source.roots import bindings, imports

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
_OWN = re.compile(r"^(?:(?:async )?(?:def|class) (\w+)|(\w+)[ \t]*(?::[^=\n]+)?=)", re.MULTILINE)
_LINEN = ("flax.linen.", "nnx_migrate.linen.")


def is_read_whole(sources: list[SourceText]) -> bool:
    """Whether a project is so small that every file of it counts."""
    return len(sources) <= _ALL


def relevant(sources: list[SourceText]) -> Iterable[SourceText]:
    """Files that name Flax, those that import what such files give, and decorators of their classes.

    What a file gives is followed from import to import: a name of Flax (``from .common import nn``), a
    class or what is written in a file that imports one (a factory). A file that imports modules by their
    names may take any class from them. A decorator is looked for where a function of its name is
    defined or handed on by a package.
    """
    if is_read_whole(sources):
        return sources
    chosen: list[SourceText] = []
    rest: list[SourceText] = []
    for source in sources:
        (chosen if _is_chosen(source.text) else rest).append(source)
    linen_sources = _LinenSources()
    for source in chosen:
        if _FLAX_IMPORT.search(source.text):
            linen_sources.take(source)
    files = [(one, _statements(one.text)) for one in rest]
    while found := [one for one in files if linen_sources.is_imported(*one)]:
        chosen += [source for source, _ in found]
        ids = {id(source) for source, _ in found}
        files = [one for one in files if id(one[0]) not in ids]
        for source, statements in found:
            linen_sources.take_importer(source, statements)
    return [*chosen, *(source for source, said in files if linen_sources.decorates(source, said))]


@dataclass
class _LinenSources:
    """What files give that may be, or build, a Linen class."""

    # By file, without ``.py`` or ``/__init__.py``, with slashes; None is whatever it has.
    names: dict[str, frozenset[str] | None] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)  # by every end of their dotted names
    classes: set[str] = field(default_factory=set)
    decorators: set[str] = field(default_factory=set)

    def take(self, source: SourceText) -> None:
        """Take a file that imports Flax."""
        classes = _MODULE_CLASS.findall(source.text)
        self.classes.update(classes)
        self.decorators.update(_DECORATOR.findall(source.text))
        names = _names_of_flax(source.text)
        if classes or names:
            self._add(source, None if classes or "*" in names else frozenset(names))

    def take_importer(self, source: SourceText, statements: Iterable[_Import]) -> None:
        """Take a file that imports from others of these: what it takes, and what is written in it."""
        names = [one.bound for one in statements if self._is_taken(source, one)]
        own = {one or other for one, other in _OWN.findall(source.text)}
        self._add(source, frozenset(own.union(*names)))

    def is_imported(self, source: SourceText, statements: Iterable[_Import]) -> bool:
        """Whether a file imports any of these."""
        return any(self._is_taken(source, one) for one in statements)

    def decorates(self, source: SourceText, statements: Iterable[_Import]) -> bool:
        """Whether a file defines a decorator of these, or hands one on."""
        exports = statements if source.path.name == "__init__.py" else ()
        if any(not self.decorators.isdisjoint(one.names | one.bound) for one in exports):
            return True
        return not self.decorators.isdisjoint(_FUNCTION.findall(f"\n{source.text}"))

    def _add(self, source: SourceText, names: frozenset[str] | None) -> None:
        file = _module(source.path)
        self.names[file] = names
        for end in _ends(file):
            self.files.setdefault(end, []).append(file)

    def _is_taken(self, source: SourceText, one: _Import) -> bool:
        """Whether an import statement may take something of these."""
        module, names = one.module, one.names
        if module.startswith("."):
            plain = module.lstrip(".")
            folder = source.path.as_posix().rsplit("/", len(module) - len(plain))[0]
            file = f"{folder}/{plain.replace('.', '/')}" if plain else folder
            found = self._gives(file, names) or any(
                f"{file}/{name}" in self.names for name in names
            )
        else:
            found = any(self._gives(file, names) for file in self.files.get(module, ()))
            found = found or any(path in self.files for path in one.paths)
        if module.partition(".")[0] in sys.stdlib_module_names:
            return found
        return found or not self.classes.isdisjoint(names)

    def _gives(self, file: str, names: frozenset[str]) -> bool:
        if file not in self.names:
            return False
        known = self.names[file]
        return known is None or "*" in names or not known.isdisjoint(names)


@dataclass(frozen=True)
class _Import:
    """An import statement: the module of ``from``, or nothing, what it binds, and what that is."""

    module: str
    bound: frozenset[str]  # names in the file
    paths: frozenset[str]  # whole: ``pkg.common.nn``

    @cached_property
    def names(self) -> frozenset[str]:
        """What it names in its module."""
        return frozenset(path.rpartition(".")[2] for path in self.paths)


def _statements(text: str) -> tuple[_Import, ...]:
    found = ((module, list(bindings(module, names))) for module, names in imports(text))
    return tuple(
        _Import(module, frozenset(name for name, _ in pairs), frozenset(path for _, path in pairs))
        for module, pairs in found
    )


def _names_of_flax(text: str) -> set[str]:
    """Names that imports of a file bind to ``flax`` or ``flax.linen``, or to what is in it.

    >>> sorted(_names_of_flax("import flax.linen\\nfrom flax import struct, linen as nn"))
    ['flax', 'nn']
    """
    return {
        name
        for one in imports(text)
        for name, path in bindings(*one)
        if path in ("flax", "nnx_migrate") or f"{path}.".startswith(_LINEN)
    }


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
