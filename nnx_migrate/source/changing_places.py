"""The places of a file that change what a module's names mean, or an object in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from nnx_migrate.source.bindings import names_bound_below, plain_bindings, target_names
from nnx_migrate.source.changes import CHANGING
from nnx_migrate.source.names import first_name, last_name, parameter_names
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.takers import imports_by_name
from nnx_migrate.source.walking import walk

# Calls that set what their first two arguments say, those of pytest and mock among them.
_SETTING = frozenset({"__delattr__", "__setattr__", "delattr", "setattr"})
_REPLACING = frozenset({"multiple", "object", "patch"})
_FILLING = frozenset({"delitem", "heappush", "iadd", "ior", "setitem", "shuffle"})
_BUILTIN = frozenset({"dict", "list", "set"})
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


@dataclass(frozen=True)
class Place:
    """One of them.

    Attributes:
      owners: the modules whose names are bound anew.
      names: these names; None where that may be any.
      value: the expression whose object is changed.
    """

    module: Module
    owners: tuple[str, ...] = ()
    names: frozenset[str] | None = frozenset()
    value: ast.expr | None = None


class Namespaces:
    """Which modules of the project expressions are, or the namespaces of which."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._named = cache(self._named_in)
        self._bound = cache(names_bound_below)
        self.values = cache(_values)

    def modules(self, module: Module, node: ast.expr, depth: int = 4) -> tuple[str, ...]:
        """The modules that an expression may be: a name, ``sys.modules["config"]``."""
        match node:
            case ast.Subscript(slice=ast.Name(id="__name__"), value=ast.Attribute(attr="modules")):
                return (module.name,)
            case ast.Call() | ast.Subscript():
                return self._named(module.name).get(id(node), ())
            case ast.Name() | ast.Attribute():
                if self.is_parameter(module, node):
                    return ()
                meanings = {*self.meanings(module, node)}
                if symbols := sorted(meanings & self._project.modules.keys()):
                    return tuple(symbols)
        if isinstance(node, ast.Name) and depth:
            for around in (*module.parents.functions(node), module.tree):
                if values := self.values(around).get(node.id):
                    found = (self.modules(module, one, depth - 1) for one in values)
                    return tuple(name for names in found for name in names)
        return ()

    def meanings(self, module: Module, node: ast.expr) -> tuple[str, ...]:
        """Every symbol that a name may refer to: in a table, to set an attribute of one is to bind it."""
        found = self._project.meanings(node, Scope(module).around(node))
        head = first_name(node)
        if found or head is None:
            return found
        if any(head.id in self._bound(one) for one in module.parents.functions(node)):
            return found
        return self._project.meanings(node, Scope(module))

    def is_parameter(self, module: Module, node: ast.expr) -> bool:
        """Whether the first name of an expression is what a function around is given, and only that."""
        head = first_name(node)
        if head is None:
            return False
        for function in module.parents.functions(node):
            if head.id in self.values(function):
                return False
            if head.id in parameter_names(function):
                return True
        return False

    def names(self, module: Module, node: ast.expr) -> tuple[str, ...]:
        """The modules whose namespace an expression may be: ``globals()``, ``vars(config)``."""
        match node:
            case ast.Call(func=ast.Name(id="globals")):
                return (module.name,)
            case ast.Call(func=ast.Name(id="locals")) if not [*module.parents.functions(node)]:
                return (module.name,)
            case ast.Call(func=ast.Name(id="vars"), args=[owner]):
                return self.modules(module, owner)
            case ast.Attribute(value=owner, attr="__dict__"):
                return self.modules(module, owner)
        return ()

    def _named_in(self, name: str) -> dict[int, tuple[str, ...]]:
        declared = self._project.imports
        return {
            id(one.node): tuple(
                other for other in self._project.modules if one.may_be(other, declared)
            )
            for one in imports_by_name(self._project)[name]
        }


def _values(around: ast.AST) -> dict[str, list[ast.expr]]:
    """What the names of a function or file are bound to, and what loops go through under them."""
    found: dict[str, list[ast.expr]] = {}
    for target, value in plain_bindings(around):
        for name in target_names(target):
            found.setdefault(name, []).append(value)
    return found


def changing_places(project: Project, module: Module, namespaces: Namespaces) -> Iterator[Place]:
    """Every such place of a file."""
    reader = _Reader(project, module, namespaces)
    for node in module.nodes:
        yield from reader.at(node)


@dataclass
class _Reader:
    project: Project
    module: Module
    namespaces: Namespaces

    def at(self, node: ast.AST) -> Iterator[Place]:
        match node:
            case ast.Attribute(value=owner, attr=word, ctx=ast.Store() | ast.Del()):
                yield self._attribute(owner, word)
            case ast.Subscript(value=owner, slice=key, ctx=ast.Store() | ast.Del()):
                yield self._entry(owner, key)
            case ast.AugAssign(target=ast.Name() as target, value=value):
                if isinstance(value, _DISPLAYS):
                    yield Place(self.module, value=target)
            case ast.Call():
                yield from self._call(node)

    def _attribute(self, owner: ast.expr, word: str | None) -> Place:
        modules = self.namespaces.modules(self.module, owner)
        if modules:
            return Place(self.module, modules, None if word is None else frozenset({word}))
        return Place(self.module, value=owner)

    def _entry(self, owner: ast.expr, key: ast.expr) -> Place:
        modules = self.namespaces.names(self.module, owner)
        if not modules:
            return Place(self.module, value=owner)
        word = _text(key)
        return Place(self.module, modules, None if word is None else frozenset({word}))

    def _call(self, call: ast.Call) -> Iterator[Place]:
        name, args = last_name(call.func), call.args
        match call.func:
            case ast.Name(id="exec"):
                yield from self._exec_changes(args)
            case ast.Attribute(value=ast.Name(id=builtin)) if builtin in _BUILTIN and args:
                if name in CHANGING:
                    yield Place(self.module, value=args[0])
            case ast.Attribute(value=owner) if name in CHANGING:
                yield self._place_of_change(owner, call)
            case ast.Attribute(value=ast.Attribute(attr="patch") | ast.Name(id="patch")) if args:
                yield from self._set(args, call, is_whole=name == "multiple")
            case ast.Name() | ast.Attribute() if name in _SETTING | _REPLACING and args:
                if name != "object" or isinstance(call.func, ast.Attribute):
                    yield from self._set(args, call, is_whole=name == "multiple")
            case ast.Name() | ast.Attribute() if name in _FILLING and args:
                yield Place(self.module, value=args[0])
        for one in call.keywords:
            if one.arg == "namespace":
                yield Place(self.module, value=one.value)

    def _place_of_change(self, owner: ast.expr, call: ast.Call) -> Place:
        modules = self.namespaces.names(self.module, owner)
        if not modules:
            return Place(self.module, value=owner)
        keywords = {one.arg for one in call.keywords}
        words = {one for one in keywords if one is not None}
        is_known = not call.args and words == keywords
        return Place(self.module, modules, frozenset(words) if is_known else None)

    def _set(self, args: list[ast.expr], call: ast.Call, *, is_whole: bool) -> Iterator[Place]:
        path = _text(args[0])
        if path is None:
            word = _text(args[1]) if args[1:] else None
            yield self._attribute(args[0], None if is_whole else word)
            return
        names = [path]
        if is_whole:
            names = [f"{path}.{one.arg}" for one in call.keywords if one.arg]
        for one in names:
            home, rest = self.project.split(self.project.canonical(one))
            if home is not None and rest:
                yield Place(self.module, (home.name,), frozenset({rest[0]}))

    def _exec_changes(self, args: list[ast.expr]) -> Iterator[Place]:
        """``exec(text)`` binds names of the file, or of what it is given for them."""
        text = _text(args[0]) if args else None
        names = None if text is None else _bound_by(text)
        modules = self.namespaces.names(self.module, args[1]) if args[1:] else (self.module.name,)
        yield Place(self.module, modules, names, None if modules else args[1])
        words = {one.attr for one in _attribute_targets(text or "")}
        yield Place(self.module, tuple(self.project.modules), frozenset(words))


def _text(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str() as text):
            return text
    return None


def _bound_by(text: str) -> frozenset[str] | None:
    tree = _parse(text)
    return None if tree is None else names_bound_below(tree)


def _attribute_targets(text: str) -> Iterator[ast.Attribute]:
    tree = _parse(text)
    for node in () if tree is None else walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
