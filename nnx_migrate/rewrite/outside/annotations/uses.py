"""Where the code of a project mentions a function, a class or a name.

A mention that may be missed, as by ``getattr(module, "name")``, raises.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import cached_property

from nnx_migrate.constructs.common.base import Context
from nnx_migrate.rewrite.outside.places import Place, places_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import Definition, last_name
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.string_names import string_names
from nnx_migrate.source.walking import each, walk

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Anything(Exception):
    """An expression may be anything, or a function be used anywhere."""


class Uses:
    """Reads the files of a project, each when it is first needed."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def place(self, module: Module, node: ast.AST) -> Place:
        """Where a node stands."""
        return places_of(module, frozenset())[node]

    def symbol(self, module: Module, node: ast.expr) -> str | None:
        """What a dotted name refers to where it stands."""
        return self.project.resolve(node, self.place(module, node).scope)

    def is_foreign(self, module: Module, node: ast.expr) -> bool:
        """Whether it is a name of another package, or Python's own."""
        symbol = self.symbol(module, node)
        if symbol is None:
            name = last_name(node) if isinstance(node, ast.Name) else ""
            is_free = self.place(module, node).scope.lookup(name) is None
            return is_free and hasattr(builtins, name)
        return self.project.split(symbol)[0] is None and not symbol.startswith("<local>")

    def decorators(self, module: Module, function: Function) -> set[str]:
        """What decorates a function: symbols, or the last names of what is unknown."""
        called = (one.func if isinstance(one, ast.Call) else one for one in function.decorator_list)
        return {self.symbol(module, one) or last_name(one) for one in called}

    def below(self, cls: ClassInfo) -> list[ClassInfo]:
        """A class and all that inherit from it, or may."""
        return [
            one
            for one in self.project.classes.values()
            if cls in one.mro or any(above in self._of_unknown_base for above in one.mro)
        ]

    @cached_property
    def _of_unknown_base(self) -> set[ClassInfo]:
        """Classes that may inherit from any."""
        found = set[ClassInfo]()
        for cls in self.project.classes.values():
            for base in cls.node.bases:
                named = base.value if isinstance(base, ast.Subscript) else base
                symbols = self.project.meanings(named, cls.scope)
                is_known = bool(symbols) or (
                    isinstance(named, ast.Name) and hasattr(builtins, named.id)
                )
                if not is_known or not all(map(self._is_class, symbols)):
                    found.add(cls)
        return found

    def _is_class(self, symbol: str) -> bool:
        """Whether a symbol is a class of the project, or another package's."""
        return symbol in self.project.classes or (
            self.project.split(symbol)[0] is None and not symbol.startswith("<local>")
        )

    def class_calls(self, name: str) -> Iterator[tuple[Module, ast.expr]]:
        """Methods of a name that are taken from a class itself."""
        for home in self.project.modules.values():
            for one in home.by_word.get(name, ()):
                owner = one.value if isinstance(one, ast.Attribute) else None
                if owner is not None and self.symbol(home, owner) in self.project.classes:
                    yield home, one

    def is_taken(self, module: Module, owner: ast.ClassDef, name: str) -> bool:
        """Whether the body of a class does something with one of its methods: ``net = partialmethod(kind)``."""
        return any(
            isinstance(one, ast.Name)
            and isinstance(one.ctx, ast.Load)
            and self.place(module, one).frame is owner
            for one in module.by_word.get(name, ())
        )

    def of(self, module: Module, function: Function) -> Iterator[tuple[Module, ast.expr]]:
        """Every mention of a function in code; of a constructor, of its class and of those below."""
        name, owner = function.name, module.parents.of(function)
        if name != "__init__" and name in string_names(self.project):
            raise Anything  # ``getattr(module, "name")``
        if isinstance(owner, ast.ClassDef):
            if name == "__init__":
                for one in self.below(self.project.by_node[id(owner)]):
                    yield from self._of_class(one)
                return
            is_bound = self.decorators(module, function).isdisjoint({"staticmethod", "classmethod"})
            if name.startswith("__") or (is_bound and any(self.class_calls(name))):
                raise Anything  # Python calls it, or positions are others
            for home in self.project.modules.values():
                for use in home.by_word.get(name, ()):
                    if isinstance(use, ast.Attribute) and isinstance(use.ctx, ast.Load):
                        yield home, use
        elif (around := module.parents.function(function)) is not None:
            for word in each(around, ast.Name):
                if word.id == name and isinstance(word.ctx, ast.Load):
                    yield module, word
        elif module.table.get(name) != Definition(function):
            raise Anything
        else:
            yield from self.mentions(f"{module.name}.{name}")

    def _of_class(self, cls: ClassInfo) -> Iterator[tuple[Module, ast.expr]]:
        """Mentions of a class, and calls of a constructor in it."""
        name = cls.node.name
        if cls.scope.tables or cls.module.table.get(name) != Definition(cls.node):
            raise Anything
        if name in string_names(self.project):
            raise Anything
        for node in walk(cls.node):
            match node:
                case ast.Call(func=ast.Name(id="cls") | ast.Call(func=ast.Name(id="type"))):
                    raise Anything
                case ast.Attribute(attr="__class__"):
                    if not isinstance(cls.module.parents.of(node), ast.Compare):
                        raise Anything
                case ast.Call(func=ast.Attribute(attr="__init__") as above):
                    yield cls.module, above
        for home, use in self.mentions(cls.name):
            match home.parents.of(use):
                case ast.Attribute(attr="__init__"):
                    raise Anything
                case ast.Attribute():
                    pass
                case _:
                    yield home, use

    def mentions(self, symbol: str) -> Iterator[tuple[Module, ast.Name | ast.Attribute]]:
        """The expressions for a top-level name of a module, but in annotations."""
        word = symbol.rpartition(".")[2]
        for home in self.project.modules.values():
            for name in {word, *self._import_aliases.get(word, ())}:
                for use in home.by_word.get(name, ()):
                    if isinstance(use.ctx, ast.Load) and self._may_be(home, use, symbol):
                        yield home, use

    @cached_property
    def _import_aliases(self) -> dict[str, set[str]]:
        """Other names under which imports bind a word."""
        found: dict[str, set[str]] = {}
        for module in self.project.modules.values():
            for node in module.nodes:
                if isinstance(node, ast.ImportFrom):
                    for one in node.names:
                        if one.asname:
                            found.setdefault(one.name, set()).add(one.asname)
        return found

    def _may_be(self, module: Module, use: ast.Name | ast.Attribute, symbol: str) -> bool:
        place = self.place(module, use)
        if place.context is Context.ANNOTATION:
            return False
        meanings = self.project.meanings(use, place.scope)
        if meanings:  # of one among several definitions of a name a file knows the word alone
            same = {symbol, f"<local>.{symbol.rpartition('.')[2]}"}
            return not same.isdisjoint(meanings) or any(map(self._is_made_up, meanings))
        match use:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                return False  # its own method
        return isinstance(use, ast.Attribute)  # of what may be a module

    def _is_made_up(self, symbol: str) -> bool:
        """Whether a module gives a name that nothing in it binds: by a ``__getattr__``."""
        home, rest = self.project.split(symbol)
        return home is not None and bool(rest) and rest[0] not in home.table
