"""One parsed file, and the scopes in which its names are looked up."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import get_args

from nnx_migrate.source.bindings import variables_of
from nnx_migrate.source.names import (
    Binding,
    FunctionNode,
    Import,
    Opaque,
    Several,
    Table,
    function_table,
    name_parts,
    rebound,
    table_of,
)
from nnx_migrate.source.walking import Comprehension, children, each, walk


@dataclass(frozen=True)
class Module:
    """One parsed file of the project."""

    name: str  # dotted module name
    path: str  # as the caller names it
    text: str
    tree: ast.Module
    is_package: bool = False
    latest: frozenset[str] = frozenset()  # names that mean the last of their several imports
    # What stars bind to something else below the other bindings
    shadowed_bindings: Mapping[str, tuple[Binding, ...]] = field(default_factory=dict, hash=False)
    # By its reader
    memo: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def lines(self) -> Lines:
        """Line index of the text."""
        return Lines(self.text)

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """Every node of the tree."""
        return walk(self.tree)

    @cached_property
    def parents(self) -> Parents:
        """What stands around every node."""
        return Parents(self.tree)

    @cached_property
    def stores(self) -> Mapping[str, tuple[ast.stmt, ...]]:
        """The top-level statements that store a name, also inside of functions, by the name."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            names = (one for one in each(statement, ast.Name))
            for name in {one.id for one in names if isinstance(one.ctx, ast.Store)}:
                found.setdefault(name, []).append(statement)
        return {name: tuple(statements) for name, statements in found.items()}

    @cached_property
    def comprehension_variables(self) -> frozenset[int]:
        """Ids of reads of what a comprehension around them binds: ``one`` of ``[f(one) for one in ones]``."""
        found: set[int] = set()
        for node in each(
            self.tree, get_args(Comprehension)
        ):  # of many nodes, faster than the union
            names = variables_of(node)
            outside = {id(one) for one in each(node.generators[0].iter, ast.Name)}
            reads = (one for one in each(node, ast.Name) if one.id in names)
            found.update(id(one) for one in reads if id(one) not in outside)
        return frozenset(found)

    @cached_property
    def by_word(self) -> Mapping[str, tuple[ast.Name | ast.Attribute, ...]]:
        """Names and attributes by their word."""
        found: dict[str, list[ast.Name | ast.Attribute]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Name):
                found.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Attribute):
                found.setdefault(node.attr, []).append(node)
        return {word: tuple(nodes) for word, nodes in found.items()}

    def symbol(self, name: str) -> str | None:
        """What a top-level name stands for, by an import or as the module's own; None of other names."""
        binding = self.table.get(name)
        if binding is None:
            return None
        return binding.target if isinstance(binding, Import) else f"{self.name}.{name}"

    @property
    def package(self) -> str:
        """Package that relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @cached_property
    def _tables(self) -> tuple[Table, tuple[str, ...]]:
        table, stars = table_of(self.tree.body, self.package)
        for name, binding in rebound(self.tree, self.package).items():
            if name in table:  # whoever calls the function binds it anew
                table[name] = Several.of(table[name], binding)
        for name, bindings in self.shadowed_bindings.items():
            mine = [table[name]] if name in table else []
            table[name] = Several.of(*mine, *bindings)
        for name in self.latest:
            several = table[name]
            table[name] = several.bindings[-1] if isinstance(several, Several) else several
        return table, stars

    @property
    def table(self) -> Table:
        """What the module's top-level names are bound to."""
        return self._tables[0]

    @property
    def stars(self) -> tuple[str, ...]:
        """Modules whose names are star-imported."""
        return self._tables[1]


@dataclass(frozen=True)
class Scope:
    """Where a name is looked up: a module and the functions and classes around the place.

    ``tables`` run from the innermost scope outwards; class scopes that Python would skip (a
    method's own class) are left out by whoever builds the scope.
    """

    module: Module
    tables: tuple[Table, ...] = ()

    def enter(self, function: FunctionNode) -> Scope:
        """The scope inside ``function``."""
        return Scope(self.module, (function_table(function, self.module.package), *self.tables))

    def parts(self, node: ast.AST) -> Iterator[tuple[ast.AST, Scope]]:
        """The parts of a node, each with the scope that it stands in.

        A function's defaults, decorators and annotations are evaluated around it, and so is what a
        comprehension goes through first.
        """
        if isinstance(node, Comprehension):
            yield from self._parts_of_comprehension(node)
            return
        body: list[ast.AST] = []
        if isinstance(node, FunctionNode):
            body = [*node.body] if isinstance(node.body, list) else [node.body]
            inside = self.enter(node)
            yield from ((part, inside) for part in body)
        yield from ((part, self) for part in ast.iter_child_nodes(node) if part not in body)

    def _parts_of_comprehension(self, node: Comprehension) -> Iterator[tuple[ast.AST, Scope]]:
        first, *others = node.generators
        own: Table = dict.fromkeys(variables_of(node), Opaque())
        inside = Scope(self.module, (own, *self.tables))
        yield first.iter, self
        for one in (first, *others):
            rounds = (one.target, *one.ifs, *(() if one is first else (one.iter,)))
            yield from ((part, inside) for part in rounds)
        items = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        yield from ((part, inside) for part in items)

    def reads(self, node: ast.AST) -> Iterator[tuple[ast.expr, Scope]]:
        """The names and longest dotted expressions that a node reads, each with the scope that it stands in."""
        todo: list[tuple[ast.AST, Scope]] = [(node, self)]
        while todo:
            one, around = todo.pop()
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
                continue  # a field, a comprehension's variable: a global of that name is another thing
            if isinstance(one, ast.Name | ast.Attribute) and name_parts(one):
                yield one, around
                continue
            todo += around.parts(one)

    def around(self, node: ast.AST) -> Scope:
        """The scope of a node of this one's module inside the functions that stand around it."""
        scope = self
        for function in reversed([*self.module.parents.functions(node)]):
            scope = scope.enter(function)
        return scope

    def binder(self, name: str) -> Scope:
        """The scope, this one or one around it, that binds ``name``; the module's if none does."""
        for position, table in enumerate(self.tables):
            if name in table:
                return Scope(self.module, self.tables[position:])
        return Scope(self.module)

    def lookup(self, name: str) -> Binding | None:
        """What ``name`` is bound to here, or None when it is a builtin or unknown."""
        for table in (*self.tables, self.module.table):
            if name in table:
                return table[name]
        return None


def module_name(path: PurePosixPath) -> tuple[str, bool]:
    """Dotted module name of a path relative to the import root, and whether it is a package."""
    parts = list(path.with_suffix("").parts)
    if parts and parts[-1] == "__init__":
        return ".".join(parts[:-1]), True
    return ".".join(parts), False


def parse(name: str, path: str, text: str, *, is_package: bool = False) -> Module:
    """Parse one file.

    Raises:
        SyntaxError: the text is no Python of the running version.
    """
    return Module(name, path, text, ast.parse(text), is_package)


# ---- what stands around a node

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Parents:
    """The way up from every node of ``tree``."""

    def __init__(self, tree: ast.AST) -> None:
        """Note the parent of every node."""
        self._parents: dict[int, ast.AST] = {}
        self._functions: dict[int, FunctionNode | None] = {}
        for node in walk(tree):
            around = node if isinstance(node, FUNCTIONS) else self._functions.get(id(node))
            for child in children(node):
                self._parents[id(child)] = node
                self._functions[id(child)] = around

    def of(self, node: ast.AST) -> ast.AST | None:
        """The node that ``node`` is a part of."""
        return self._parents.get(id(node))

    def above(self, node: ast.AST) -> list[ast.AST]:
        """Everything around ``node``, the innermost first."""
        return [*self._climb(node)]

    def _climb(self, node: ast.AST) -> Iterator[ast.AST]:
        around = self._parents
        parent = around.get(id(node))
        while parent is not None:
            yield parent
            parent = around.get(id(parent))

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function around ``node``."""
        return self._functions.get(id(node))

    def functions(self, node: ast.AST) -> Iterator[FunctionNode]:
        """Every function around ``node``, the innermost first."""
        around = self._functions.get(id(node))
        while around is not None:
            yield around
            around = self._functions.get(id(around))

    def returns(self, function: ast.AST) -> Iterator[ast.Return]:
        """The return statements of ``function``, not those of functions inside it."""
        return (one for one in each(function, ast.Return) if self.function(one) is function)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around ``node``."""
        return next((one for one in self._climb(node) if isinstance(one, ast.ClassDef)), None)


# ---- where an ``ast`` node stands in the exact source text
# Edits are spans of text, so whatever no edit touches stays byte-identical. ``ast`` counts lines as
# the tokenizer does (``\n``, ``\r\n``, ``\r``; a form feed ends no line) and columns in UTF-8
# bytes; this module turns both into character offsets.

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Span:
    """Half-open range of character offsets."""

    start: int
    end: int


@dataclass(frozen=True)
class Lines:
    """Line index of one source text."""

    text: str

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Offset of the first character of every line."""
        return (0, *(match.end() for match in _LINE_END.finditer(self.text)))

    def offset(self, line: int, byte_column: int) -> int:
        """Character offset of line ``line`` (from 1), UTF-8 byte column ``byte_column`` (from 0)."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        content = self.text[start:end]
        if content.isascii():
            return start + byte_column
        return start + len(content.encode("utf-8")[:byte_column].decode("utf-8"))

    def span(self, node: ast.AST) -> Span:
        """Span of a node that has a position."""
        return Span(
            self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of a character offset."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line_end(self, offset: int) -> int:
        """Offset just past the line (its end-of-line included) that holds ``offset``."""
        index = bisect_right(self.starts, offset)
        return self.starts[index] if index < len(self.starts) else len(self.text)

    @cached_property
    def newline(self) -> str:
        """The end-of-line the file uses first; ``\\n`` when it has none."""
        match = _LINE_END.search(self.text)
        return match.group() if match else "\n"
