"""Places where code may get a class without writing its name.

``getattr(models, config.model)`` may give any class of ``models``, ``globals()["A"]`` gives one, and a
module that is handed on (``inspect.getmembers(models)``) may be asked for all that it has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.source.attribute_uses import attribute_uses
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.linen_modules import class_homes
from nnx_migrate.source.names import Assignment, Definition, Import, first_name, last_name
from nnx_migrate.source.project import Module, Project, Scope

_NAMESPACES = ("globals", "locals", "vars", "dir")
_EVALUATORS = ("eval", "exec")
_OF_MODULES = ("__dict__", "__getattribute__")
# What asks for an attribute by a string, and what sets one; `object` is that of `mock.patch`.
_READERS = ("getattr", "hasattr")
_BY_STRING = (*_READERS, "setattr", "delattr", "object")
SUBCLASSES = "__subclasses__"
_Bound = tuple[str, str | None]  # a module, and one of its names or None for any
EXAMPLE = ">>>"
_EXAMPLE = re.compile(rf"^\s*(?:{EXAMPLE}|\.\.\.)(.*)$", re.MULTILINE)
_IMPORTING = re.compile(r"^\s*(import|from)\s", re.MULTILINE)


@dataclass(frozen=True)
class Access:
    """A place where code may get a class of a module without writing its name.

    Attributes:
      path: the file it stands in.
      module: whose class it may be; None where that may be any module.
      word: the name that it asks for; None where that may be any.
      reason: what the code does there.
    """

    node: ast.AST
    path: str
    module: str | None
    word: str | None
    reason: str

    @property
    def line(self) -> int:
        """The line it stands on."""
        return getattr(self.node, "lineno", 1)

    def may_be(self, cls: ClassInfo, project: Project) -> bool:
        """Whether it may give a class."""
        if self.module is None:
            return self.word in (None, cls.node.name)
        if self.module not in class_homes(project)[cls.name]:
            return False
        symbol = project.canonical(f"{self.module}.{self.word}")
        return self.word in (None, cls.node.name) or symbol == cls.name


def accesses(project: Project, places: Places) -> Iterator[Access]:
    """Every such place of a module."""
    return _Reader(project, places.module, places).accesses()


@dataclass
class _Reader:
    project: Project
    module: Module
    places: Places

    def accesses(self) -> Iterator[Access]:
        for place in self.places:
            yield from self._at(place)
            match place.node:
                case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) as node:
                    symbol = self._module(node, place.scope)
                    if symbol is not None:
                        yield from self._of_value(place, node, symbol)

    def _at(self, place: Place) -> Iterator[Access]:
        match place.node:
            case ast.Call(func=ast.Name(id=name), args=[]) if name in _NAMESPACES:
                is_local = name != "globals" and not isinstance(place.frame, ast.Module)
                bound = self._local(place) if is_local else self._global(place)
                yield from self._bound(place.node, bound, "names are computed here")
            case ast.Call(func=ast.Name(id=name), args=[text, *_]) if name in _EVALUATORS:
                if place.scope.lookup(name) is None:
                    yield from self._of_evaluation(place, text)
            case ast.Attribute(value=owner, attr=name) if name == SUBCLASSES:
                yield from self._subclasses(place, owner)
            case ast.Constant(value=str() as text) if not isinstance(place.parent, ast.Expr):
                if _IMPORTING.search(text) and _is_code(text):
                    yield from self._of_strings(place.node, text)
            case ast.Constant(value=str() as text) if self.project.runs_examples:
                examples = "\n".join(_EXAMPLE.findall(text))
                yield from self._of_strings(place.node, examples)

    # ---- modules as values

    def _module(self, node: ast.Name | ast.Attribute, scope: Scope) -> str | None:
        """The module of the project that an expression is."""
        head = first_name(node)
        if head is None or head.id not in self._heads:
            return None
        symbol = self.project.resolve(node, scope)
        return symbol if symbol in self.project.modules else None

    @cached_property
    def _heads(self) -> set[str]:
        """Names of the file that may be modules of the project."""
        words = {part for name in self.project.modules for part in name.split(".")}
        found: set[str] = set()
        for node in self.module.nodes:
            match node:
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    for one in names:
                        if words.intersection(one.name.split(".")):
                            found.add(one.asname or one.name.partition(".")[0])
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute()):
                    found.add(name)
        return found

    def _of_value(self, place: Place, value: ast.expr, symbol: str) -> Iterator[Access]:
        """What code may get of a module at a place where the module is a value."""
        node: ast.expr = value
        parent = place.parent
        words: Iterable[str | None] = ()
        match parent:
            case ast.Attribute(attr=name) if name in _OF_MODULES:
                node, words = parent, [self._subscript(parent)]
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                node, words = parent, [name]
            case ast.Call(func=ast.Name(id=name), args=[owner]) if (
                owner is node and name in _NAMESPACES
            ):
                node, words = parent, [self._subscript(parent)]
            case ast.Call(func=function, args=[owner, given_value, *_]) if (
                owner is node and last_name(function) in _BY_STRING
            ):
                if last_name(function) in _READERS and (
                    isinstance(given_value, ast.Constant)
                    or attribute_uses(self.project).only_describes(self.module, parent)
                ):
                    return
                node = parent
                words = [str(given_value.value) if isinstance(given_value, ast.Constant) else None]
            case ast.Assign(targets=[ast.Name(id=name)]) if isinstance(
                place.scope.lookup(name), Assignment
            ):
                return  # an alias, which is followed
            case ast.Attribute() | ast.Compare() | ast.Expr():
                return
            case _:
                names = attribute_uses(self.project).of(self.module, value)
                words = [None] if names is None else names
        homes = (symbol, *self._handing_on(symbol))
        bound = [(home, word) for word in words for home in homes]
        yield from self._bound(node, bound, f"names of {symbol} are computed here")

    def _subscript(self, node: ast.AST) -> str | None:
        """``A`` of ``vars(models)["A"]``."""
        match self.places.parent(node):
            case ast.Subscript(value=value, slice=ast.Constant(value=str() as word), ctx=context):
                return word if value is node and isinstance(context, ast.Load) else None
        return None

    def _handing_on(self, package: str) -> Iterator[str]:
        """The modules that a package takes names from."""
        for binding in self.project.modules[package].table.values():
            if isinstance(binding, Import):
                home, _ = self.project.split(self.project.canonical(binding.target))
                if home is not None:
                    yield home.name

    # ---- names that code computes

    def _global(self, place: Place) -> Iterator[_Bound]:
        """All names of the file; one where it is asked for by a string."""
        yield self.module.name, self._subscript(place.node)

    def _local(self, place: Place) -> Iterator[_Bound]:
        """Classes that the functions around a place define or import."""
        for binding in (one for table in place.scope.tables for one in table.values()):
            cls = None
            match binding:
                case Import(target=target):
                    cls = self.project.linen.get(self.project.import_symbol(target, self.module))
                case Definition(node=node):
                    cls = self.project.by_node.get(id(node))
            if cls is not None:
                yield cls.module.name, cls.node.name

    def _modules(self, place: Place) -> Iterator[_Bound]:
        """Modules of the project that names stand for."""
        for table in (*place.scope.tables, self.module.table):
            for binding in table.values():
                if isinstance(binding, Import):
                    symbol = self.project.import_symbol(binding.target, self.module)
                    if symbol in self.project.modules:
                        yield symbol, None

    def _bound(self, node: ast.AST, bound: Iterable[_Bound], reason: str) -> Iterator[Access]:
        for module, word in bound:
            what = f"{word} is read from {module} here" if word else reason
            yield Access(node, self.module.path, module, word, what)

    def _of_evaluation(self, place: Place, text: ast.expr) -> Iterator[Access]:
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield from self._of_strings(place.node, text.value)
            return
        reason = "code that is made while the program runs may name it here"
        bound = (*self._global(place), *self._local(place), *self._modules(place))
        yield from self._bound(place.node, bound, reason)

    def _of_strings(self, node: ast.AST, code: str) -> Iterator[Access]:
        """Classes that code in a string names."""
        words = set(re.findall(r"\w+", code))
        for word in sorted(words & {one.node.name for one in self.project.linen.values()}):
            yield Access(node, self.module.path, None, word, f"code in a string names {word} here")

    def _subclasses(self, place: Place, owner: ast.expr) -> Iterator[Access]:
        symbol = self.project.resolve(owner, place.scope)
        base = self.project.classes.get(symbol or "")
        for cls in self.project.linen.values():
            if symbol is None or symbol == "flax.linen.Module" or base in cls.mro:
                reason = "the classes that inherit from a class are listed here"
                path, home, word = self.module.path, cls.module.name, cls.node.name
                yield Access(place.node, path, home, word, reason)


def _is_code(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
