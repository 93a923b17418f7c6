"""Values that the project's own constructors give to class-valued fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import dotted
from nnx_migrate.source.project import Project, Scope


@dataclass(frozen=True)
class Given:
    """One constructor argument: the expression and where it stands."""

    value: ast.expr
    scope: Scope
    cls: ClassInfo | None  # Linen class whose method holds the constructor call
    function: ast.FunctionDef | None


@dataclass(frozen=True, eq=False)
class Candidates:
    """Index of every constructor call of the project's Linen classes."""

    project: Project

    @cached_property
    def _given(self) -> dict[tuple[str, str], list[Given]]:
        found: dict[tuple[str, str], list[Given]] = {}
        for scope, cls, function, call in self._all_calls:
            for name, argument, value in self._arguments(scope, cls, call):
                found.setdefault((name, argument), []).append(Given(value, scope, cls, function))
        return found

    def _arguments(
        self, scope: Scope, caller: ClassInfo | None, call: ast.Call
    ) -> Iterator[tuple[str, str, ast.expr]]:
        symbol = self.project.resolve(call.func, scope)
        args = list(call.args)
        if symbol == "functools.partial" and args:
            symbol = self.project.resolve(args.pop(0), scope)
        if symbol is None and caller is not None:
            for found in self._through_field(caller, call.func):
                yield from self._bound(found, args, call)
        elif symbol is not None:
            yield from self._bound(symbol, args, call)

    def _through_field(self, caller: ClassInfo, function: ast.expr) -> Iterator[str]:
        """Classes that ``self.block_cls(...)`` may construct."""
        parts = dotted(function)
        if parts and parts[0] == "self" and len(parts) == 2:
            for scope, cls, inner, call in self._all_calls:
                named = [k.value for k in call.keywords if k.arg == parts[1]]
                symbol = self.project.resolve(call.func, scope)
                if symbol == "functools.partial" and call.args:
                    symbol = self.project.resolve(call.args[0], scope)
                if symbol == caller.name and named:
                    yield from self._symbols(Given(named[0], scope, cls, inner), named[0], 2)
            default = next((f for f in caller.fields if f.name == parts[1]), None)
            if default is not None and default.default is not None:
                given = Given(default.default, default.owner.scope, None, None)
                yield from self._symbols(given, default.default, 2)

    @cached_property
    def _all_calls(self) -> list[Call]:
        return list(_calls(self.project))

    def _bound(
        self, symbol: str, args: list[ast.expr], call: ast.Call
    ) -> Iterator[tuple[str, str, ast.expr]]:
        cls = self.project.linen.get(symbol)
        if cls is None:
            return
        names = [one.name for one in cls.fields]
        for name, value in zip(names, args, strict=False):
            yield symbol, name, value
        for keyword in call.keywords:
            if keyword.arg:
                yield symbol, keyword.arg, keyword.value

    def given(self, cls: ClassInfo, field: str) -> tuple[Given, ...]:
        """Expressions that constructor calls pass for a field of a class."""
        return tuple(self._given.get((cls.name, field), ()))

    def factories(self, cls: ClassInfo, field: str, depth: int = 4) -> tuple[str, ...]:
        """Symbols of layers or classes that reach a class-valued field; () when any is unknown."""
        default = next((f for f in cls.fields if f.name == field), None)
        sources = list(self.given(cls, field))
        if default is not None and default.default is not None:
            sources.append(Given(default.default, default.owner.scope, None, None))
        symbols: list[str] = []
        for source in sources:
            found = self._symbols(source, source.value, depth)
            if not found:
                return ()
            symbols.extend(one for one in found if one not in symbols)
        return tuple(symbols)

    def _symbols(self, source: Given, value: ast.expr, depth: int) -> tuple[str, ...]:
        if depth == 0:
            return ()
        if isinstance(value, ast.Call) and value.args:
            target = self.project.resolve(value.func, source.scope)
            return self._symbols(source, value.args[0], depth - 1) if _is_partial(target) else ()
        parts = dotted(value)
        if parts and parts[0] == "self" and len(parts) == 2 and source.cls is not None:
            return self.factories(source.cls, parts[1], depth - 1)
        if parts and len(parts) == 1 and source.function is not None:
            local = _local_value(source.function, parts[0])
            if local is not None:
                return self._symbols(source, local, depth - 1)
        symbol = self.project.resolve(value, source.scope)
        if symbol and (symbol in self.project.linen or symbol.startswith("flax.linen.")):
            return (symbol,)
        return ()


def _is_partial(symbol: str | None) -> bool:
    return symbol == "functools.partial"


def _local_value(function: ast.FunctionDef, name: str) -> ast.expr | None:
    values = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    ]
    return values[0] if len(values) == 1 else None


Call = tuple[Scope, ClassInfo | None, ast.FunctionDef | None, ast.Call]


def _calls(project: Project) -> Iterator[Call]:
    for module in project.modules.values():
        yield from _calls_in(module.tree.body, Scope(module), None, None, project)


def _calls_in(
    body: list[ast.stmt],
    scope: Scope,
    cls: ClassInfo | None,
    function: ast.FunctionDef | None,
    project: Project,
) -> Iterator[Call]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            found = next((c for c in project.classes.values() if c.node is statement), None)
            yield from _calls_in(statement.body, scope, found, function, project)
        elif isinstance(statement, ast.FunctionDef):
            yield from _calls_in(statement.body, scope.enter(statement), cls, statement, project)
        else:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    yield scope, cls, function, node
