"""The functions that constructor calls of the project give to fields, through tables and what functions return.

``Inner(act=ACTS[self.kind])`` may give any value of ``ACTS``, and ``Inner(act=get_act(name))`` what ``get_act`` returns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from nnx_migrate.sizes.module_fields import Field, given_values
from nnx_migrate.source.names import Assignment, Definition, Several, last_name
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each

Given = tuple[ast.expr | ast.FunctionDef, Scope]
_Argument = tuple[ast.expr, Scope, ast.ClassDef | None]  # with the class that it stands in
_TAKING = frozenset({"get", "pop", "setdefault"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_of(
    project: Project, node: ast.expr, scope: Scope, around: ast.ClassDef | None
) -> Iterator[Given]:
    """The lambdas, functions of the project and of libraries that an expression may be.

    ``around`` is the class whose fields ``self.act`` means: they hold their defaults, or what constructor
    calls of the project give them.
    """
    return _Search(project, _arguments(project)).values(node, scope, around)


@lru_cache(maxsize=2)  # every analysis of a project asks
def _arguments(project: Project) -> Mapping[Field, list[_Argument]]:
    given: dict[Field, list[_Argument]] = {}
    for one, value, scope, around in given_values(project):
        given.setdefault(one, []).append((value, scope, around))
    return given


@dataclass
class _Search:
    project: Project
    given: Mapping[Field, list[_Argument]]
    _seen: set[int] = field(default_factory=set)

    def values(
        self, node: ast.expr, scope: Scope, around: ast.ClassDef | None = None
    ) -> Iterator[Given]:
        """The functions that an expression may be."""
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        match node:
            case ast.Lambda():
                yield node, scope
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if around is not None:
                yield from self._of_field(name, around)
            case ast.Name() | ast.Attribute():
                yield from self._named(node, scope, around)
            case ast.IfExp(body=body, orelse=orelse):
                for one in (body, orelse):
                    yield from self.values(one, scope, around)
            case ast.BoolOp(values=values):
                for one in values:
                    yield from self.values(one, scope, around)
            case ast.Subscript(value=table):
                yield from self._entries(table, scope)
            case ast.Call(func=ast.Attribute(value=table, attr=method), args=args) if (
                method in _TAKING
            ):
                yield from self._entries(table, scope)
                for one in args[1:]:
                    yield from self.values(one, scope)
            case ast.Call(func=function) if last_name(function) == "partial":
                yield node, scope
            case ast.Call(func=function):
                yield from self._returned(function, scope)

    def _of_field(self, name: str, around: ast.ClassDef) -> Iterator[Given]:
        """What a field of the class around a call may hold."""
        cls = self.project.by_node.get(id(around))
        if cls is None:
            return
        for value, scope, other in self.given.get((cls.name, name), ()):
            yield from self.values(value, scope, other)
        for one in cls.fields:
            if one.name == name and one.default is not None:
                yield from self.values(one.default, one.owner.scope)

    def _named(
        self, node: ast.Name | ast.Attribute, scope: Scope, around: ast.ClassDef | None
    ) -> Iterator[Given]:
        symbol = self.project.resolve(node, scope)
        binding = scope.lookup(node.id) if isinstance(node, ast.Name) else None
        if isinstance(binding, Definition) and self.project.definition(symbol or "") is None:
            if isinstance(binding.node, ast.FunctionDef):
                yield binding.node, scope
            return
        if symbol is None:
            values = binding.bindings if isinstance(binding, Several) else (binding,)
            for one in values:
                if isinstance(one, Assignment):
                    yield from self.values(one.value, scope, around)
            return
        home, _ = self.project.split(symbol)
        definition = self.project.definition(symbol)
        if home is None or (definition is not None and isinstance(definition[1], ast.FunctionDef)):
            yield node, scope
        elif definition is not None and isinstance(definition[1], ast.expr):
            yield from self.values(definition[1], Scope(definition[0]))

    def _entries(self, table: ast.expr, scope: Scope) -> Iterator[Given]:
        """The values of a table that an expression names or is, with those that are put into it later."""
        symbol = self.project.resolve(table, scope)
        definition = self.project.definition(symbol) if symbol is not None else None
        where, value = scope, table
        if definition is not None and isinstance(definition[1], ast.expr):
            where, value = Scope(definition[0]), definition[1]
        elif isinstance(table, ast.Name):
            match scope.lookup(table.id):
                case Assignment(value=held):
                    value = held
                case Several(bindings=bindings):
                    every = [one.value for one in bindings if isinstance(one, Assignment)]
                    value = every[0] if every else table
        for one in _parts(value):
            yield from self.values(one, where)
        if word := last_name(table):
            yield from self._put(word)

    def _put(self, table: str) -> Iterator[Given]:
        """What code puts into a table of that name: by an entry, or by a decorator that does."""
        for module in self.project.modules.values():
            for node in module.by_word.get(table, ()):
                entry = module.parents.of(node)
                put = module.parents.of(entry) if isinstance(entry, ast.Subscript) else None
                if not isinstance(put, ast.Assign) or entry not in put.targets:
                    continue
                scope = Scope(module).around(put)
                yield from self.values(put.value, scope)
                for function in module.parents.functions(put):
                    if isinstance(function, _Function):
                        yield from self._decorated(function.name)

    def _decorated(self, decorator: str) -> Iterator[Given]:
        for module in self.project.modules.values():
            for node in each(module.tree, ast.FunctionDef) if decorator in module.text else ():
                for one in node.decorator_list:
                    called = one.func if isinstance(one, ast.Call) else one
                    if last_name(called) == decorator:
                        yield node, Scope(module).around(node)

    def _returned(self, function: ast.expr, scope: Scope) -> Iterator[Given]:
        """What a function of the project returns."""
        found = self.project.definition(self.project.resolve(function, scope) or "")
        if found is None or not isinstance(found[1], ast.FunctionDef):
            return
        module: Module = found[0]
        for one in each(found[1], ast.Return):
            if one.value is not None and module.parents.function(one) is found[1]:
                yield from self.values(one.value, Scope(module).around(one))


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    match value:
        case ast.Dict(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
            yield from values
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords, args=args):
            yield from (one.value for one in keywords)
            for one in args:
                yield from _parts(one)
