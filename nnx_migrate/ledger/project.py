"""The project's files: which exist, which can matter, parsed when first asked for."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nnx_migrate.ledger.data import Source
from nnx_migrate.ledger.scope_data import Unit
from nnx_migrate.ledger.scopes import analyse
from nnx_migrate.ledger.statements import Statement, statements_of
from nnx_migrate.ledger.trees import statements, walk


@dataclass
class Read:
    """Files as a count has read them, for counts of the same files with other texts.

    Attributes:
      units: None where they do not parse.
      imports: by the modules of a project, those and the names in them that a file may import.
    """

    units: dict[Source, Unit | None] = field(default_factory=dict)
    statements: dict[Source, list[Statement]] = field(default_factory=dict)
    imports: dict[frozenset[str], dict[Source, frozenset[tuple[str, str]]]] = field(
        default_factory=dict
    )


class Project:
    """Every source by module name; ``unit`` parses and remembers, in ``read`` if that is given."""

    def __init__(self, sources: Sequence[Source], read: Read | None = None) -> None:
        self.sources = {source.path: source for source in sources}
        self.by_module: dict[str, Source] = {}
        self.packages: set[str] = set()
        for source in sources:
            self.by_module.setdefault(source.module, source)
            parts = source.module.split(".")
            self.packages.update(".".join(parts[:size]) for size in range(1, len(parts)))
        self._read = Read() if read is None else read
        self.imports = self._read.imports.setdefault(frozenset(self.by_module), {})
        self._trees: dict[Source, ast.Module | None] = {}
        self._size = 0  # characters of the files that are held parsed
        self._is_kept = read is not None  # what is read is for later counts, too
        self._exports: dict[str, Exports | None] = {}

    def unit(self, path: str) -> Unit | None:
        """The parsed file, or None when it does not parse."""
        source = self.sources[path]
        if source not in self._read.units:
            tree = self._trees.pop(source) if source in self._trees else self._parse(source)
            text = source.text.removeprefix("\ufeff")
            unit = analyse(tree, source.path, source.module, text) if tree is not None else None
            self._read.units[source] = unit
        return self._read.units[source]

    def tree(self, source: Source) -> ast.Module | None:
        """The syntax tree of a file, or None when it does not parse."""
        if self._is_kept or source in self._read.units:
            unit = self.unit(source.path)
            return unit.tree if unit is not None else None
        if source not in self._trees:
            self._trees[source] = self._parse(source)
        return self._trees[source]

    def statements(self, name: str, *, bodies: bool) -> list[Statement]:
        """The top-level statements of a module of the project; of one that does not parse, none.

        ``bodies``: whether what the methods of its classes mention counts.
        """
        source, known = self.by_module[name], self._read.statements
        if source not in known:
            tree = self.tree(source)
            known[source] = (
                [] if tree is None else statements_of(tree, source.path, source.module, bodies)
            )
        return known[source]

    def trim(self, size: int) -> None:
        """Forget the parsed files if they have more characters; nothing may still refer to them."""
        if self._is_kept or self._size <= size:
            return
        self._size = 0
        self._trees.clear()
        for unit in self._read.units.values():
            if unit is not None:
                unit.release()
        self._read.units.clear()

    def _parse(self, source: Source) -> ast.Module | None:
        self._size += len(source.text)
        return _parse(source)

    def exports(self, name: str) -> Exports | None:
        """What star imports take from a module of the project; None where it does not parse."""
        if name not in self._exports:
            source = self.by_module.get(name)
            tree = self.tree(source) if source is not None else None
            self._exports[name] = None if tree is None else exports(tree)
        return self._exports[name]

    def module(self, name: str) -> Unit | None:
        """The parsed module of that dotted name, if it is a file of the project."""
        source = self.by_module.get(name)
        return None if source is None else self.unit(source.path)

    def has(self, name: str) -> bool:
        """Whether a module or package of that dotted name is part of the project."""
        return name in self.by_module or name in self.packages

    def locate(self, name: str, importer: str) -> str:
        """The project's name for an absolute import written in the module ``importer``.

        A script's neighbours are importable by their bare names (Python puts the script's
        directory on the path) and a ``src`` folder is no package, so a name the project lacks is
        looked for beside the importer and in the folders above it. No module means itself:
        ``import nir`` in ``pkg/nir.py`` is the installed package.
        ``flax`` is always the installed package, even inside a checkout of Flax itself.
        """
        if name.partition(".")[0] == "flax" or not name or self.has(name):
            return name
        found = (one for one in _beside(name, importer) if one != importer and self.has(one))
        return next(found, name)


def _beside(name: str, importer: str) -> list[str]:
    """A name in the importer's folder and in those above it, nearest first."""
    parts = importer.split(".")[:-1]
    return [".".join([*parts[:size], name]) for size in range(len(parts), 0, -1)]


def _parse(source: Source) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes are the user's business
            return ast.parse(source.text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# ---- what ``from module import *`` takes from a module of the project


@dataclass(frozen=True)
class Exports:
    """``names`` of a plain ``__all__``; None where any name may be in it.

    A module without ``__all__`` exports what does not begin with an underscore.
    """

    has_all: bool = False
    names: frozenset[object] | None = None

    def __contains__(self, name: str) -> bool:
        """Whether a star import takes a name; ``*`` stands for any."""
        if not self.has_all:
            return not name.startswith("_")
        return name == "*" or self.names is None or name in self.names


def exports(tree: ast.Module) -> Exports:
    """What a file exports."""
    lists = [value for node in statements(tree) for value in _all_nodes(node)]
    items = [item for one in lists if isinstance(one, ast.List | ast.Tuple) for item in one.elts]
    is_plain = all(isinstance(one, ast.List | ast.Tuple) for one in lists)
    if not is_plain or not all(isinstance(one, ast.Constant) for one in items):
        return Exports(has_all=True)
    names = frozenset(one.value for one in items if isinstance(one, ast.Constant))
    return Exports(bool(lists), names)


def _all_nodes(node: ast.stmt) -> Iterator[ast.AST]:
    """What a statement gives ``__all__``; the statement where that is no value of its own."""
    match node:
        case ast.Assign(targets=targets, value=value):
            plain = [one for one in targets if _is_all(one)]
            yield from (value for _ in plain)
            yield from (
                node for one in targets if one not in plain and any(map(_is_all, walk(one)))
            )
        case ast.AnnAssign(target=target, value=ast.expr() as value) if _is_all(target):
            yield value
        case ast.AugAssign(target=target) if _is_all(target):
            yield node


def _is_all(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"
