"""The files of the user's code: hashes, import names and the strings that stand in them."""

from __future__ import annotations

import ast
import sys
import sysconfig
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from nnx_migrate.digests import digest
from nnx_migrate.evidence.observations import SourceFile
from nnx_migrate.evidence.statements import method_codes

_OWN = str(Path(__file__).parents[1])
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_LIBRARIES = ("jax", "jaxlib", "flax", "numpy", "optax", "orbax", "_pytest", "pluggy", "pytest")
_MAIN = ("__main__", "__mp_main__")  # names of the script, which no import finds
_LONGEST = 60  # strings of code that name choices are shorter


@dataclass
class SourceFiles:
    """Files met so far in this process, each read once."""

    reads: dict[str, _Read | None] = field(default_factory=dict)

    def file(self, filename: str) -> SourceFile | None:
        """The user's file of that name; None for libraries, the standard library and no file."""
        read = self._read(filename)
        return read.file if read else None

    def has_text(self, text: str) -> bool:
        """Whether a string stands as a literal in some file met so far."""
        return any(read is not None and text in read.literals for read in self.reads.values())

    def has_word(self, word: str) -> bool:
        """Whether an attribute of that name is read in some file met so far."""
        return any(read is not None and word in read.attributes for read in self.reads.values())

    def has_keyword(self, word: str) -> bool:
        """Whether an argument is given by that name in some file met so far."""
        return any(read is not None and word in read.keywords for read in self.reads.values())

    @property
    def all(self) -> list[SourceFile]:
        """Every user's file met so far."""
        return [read.file for read in self.reads.values() if read]

    def _read(self, filename: str) -> _Read | None:
        if filename not in self.reads:
            self.reads[filename] = _read(filename)
        return self.reads[filename]


@dataclass(frozen=True)
class _Read:
    file: SourceFile
    content: bytes

    @cached_property
    def _tree(self) -> ast.Module | None:
        try:
            return ast.parse(self.content)
        except (SyntaxError, ValueError):
            return None

    @cached_property
    def literals(self) -> frozenset[str]:
        """Short strings of the code, docstrings left out by their length."""
        nodes = ast.walk(self._tree) if self._tree else ()
        return frozenset(
            node.value
            for node in nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and len(node.value) <= _LONGEST
        )

    @cached_property
    def attributes(self) -> frozenset[str]:
        """Names of attributes."""
        nodes = ast.walk(self._tree) if self._tree else ()
        return frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute))

    @cached_property
    def keywords(self) -> frozenset[str]:
        """Names under which arguments are given: ``dict(heads=8)``."""
        nodes = ast.walk(self._tree) if self._tree else ()
        return frozenset(node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg)


def is_library(filename: str) -> bool:
    """Whether a file belongs to jax, flax or others whose code no one migrates."""
    if filename.startswith(("<", _OWN)):
        return True
    _, separator, inside = filename.rpartition("site-packages/")
    if separator:
        return inside.split("/")[0].removesuffix(".py") in _LIBRARIES
    return filename.startswith(_STANDARD_LIBRARY)


def _read(filename: str) -> _Read | None:
    if is_library(filename):
        return None
    try:
        content = Path(filename).read_bytes()
    except OSError:
        return None
    return _Read(SourceFile(digest(content), _module_of(filename), Path(filename).name), content)


def _module_of(filename: str) -> str:
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == filename and name not in _MAIN:
            return name
    return Path(filename).stem


def file_of(cls: type) -> str | None:
    """The file whose class statement a class is; None for classes made by library code."""
    code = next(method_codes(cls), None)
    if code is not None:
        return code.co_filename
    module = sys.modules.get(cls.__module__)
    found = getattr(module, "__file__", None)
    return found if isinstance(found, str) else None
