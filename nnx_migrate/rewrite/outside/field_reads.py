"""Fields that an expression may be: of ``norm_of(self.kind, self.norm)`` those that ``norm_of`` may return.

What a function only looks at is not among them: its tests, what it gives the layers that it returns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from nnx_migrate.constructs import is_layer, is_linen
from nnx_migrate.rewrite.class_values import CLASS_LIFTS
from nnx_migrate.sizes.static_parameters import bound_arguments, parameters_of
from nnx_migrate.source.bindings import plain_bindings
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, given_values, walk


def read_fields(
    project: Project, cls: ClassInfo, node: ast.AST, every: frozenset[str] = frozenset()
) -> set[str]:
    """Fields that an expression may be, also through names that the class's methods assign.

    Args:
      every: all fields that may hold modules, of any class: a partial may give them.
    """
    names = _Origins(project, every).names([node], cls.scope, _assigned_in_class(cls))
    return {one.name for one in cls.fields if f"self.{one.name}" in names}


@dataclass
class _Origins:
    """Names that an expression may be the value of."""

    project: Project
    every: frozenset[str]
    # The parameters that each function may return, or build its result from.
    functions: dict[str, frozenset[str]] = field(default_factory=dict)

    def names(
        self, nodes: list[ast.AST], scope: Scope, assignments: Mapping[str, list[ast.AST]]
    ) -> set[str]:
        """Such names, ``self.norm`` for a field, also through names that ``assignments`` give them."""
        found, todo = set[str](), nodes
        while todo:
            for one in self._parts(todo.pop(), scope):
                match one:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name):
                        key = f"self.{name}"
                    case ast.Name(id=name):
                        key = name
                    case _:
                        continue
                if key not in found:
                    found.add(key)
                    todo += assignments.get(key, [])
        return found

    def _parts(self, node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
        """What the value of an expression is or is made of; not what its calls were only given."""
        match node:
            case ast.Lambda():
                yield from walk(node)
            case ast.Call():
                for one in self._parts_of_call(node, scope):
                    yield from self._parts(one, scope)
            case ast.Attribute() | ast.Name():
                yield node
            case ast.Subscript(value=table):  # its key is data
                yield from self._parts(table, scope)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._parts(body, scope)
                yield from self._parts(orelse, scope)
            case _:
                for child in ast.iter_child_nodes(node):
                    yield from self._parts(child, scope)

    def _parts_of_call(self, call: ast.Call, scope: Scope) -> Iterator[ast.AST]:
        """Arguments that what a call returns may be or be made of."""
        symbol = self.project.resolve(call.func, scope) or ""
        if symbol == "functools.partial" and call.args:
            yield call.args[0]
            for keyword in call.keywords:  # the others are data of what is built
                if keyword.arg is None or keyword.arg in self.every:
                    yield keyword.value
        elif symbol in CLASS_LIFTS:  # its options are data
            yield from call.args[:1]
            yield from (one.value for one in call.keywords if one.arg in (None, "target"))
        elif self.project.function(symbol) is not None:
            yield from self._arguments(call, symbol)
        elif (is_linen(symbol) and not is_layer(symbol)) or symbol == "builtins.getattr":
            yield from given_values(call)

    def _arguments(self, call: ast.Call, symbol: str) -> Iterator[ast.AST]:
        function = self.project.function(symbol)
        arguments = bound_arguments(function, call) if function is not None else None
        if arguments is None:
            yield from given_values(call)
            return
        yield from (
            arguments[name] for name in sorted(self._result_parameters(symbol) & arguments.keys())
        )

    def _result_parameters(self, symbol: str) -> frozenset[str]:
        """The parameters that a function of the project may return, or build its result from."""
        if symbol not in self.functions:
            found = self.project.definition(symbol)
            assert found is not None
            module, function = found
            assert isinstance(module, Module)
            assert isinstance(function, ast.FunctionDef)
            self.functions[symbol] = frozenset(parameters_of(function))  # where it calls itself
            if not _holds_functions(function):
                values = [*each(function, ast.Return), *each(function, ast.Yield)]
                scope, assigned = Scope(module).enter(function), _assignments(function)
                self.functions[symbol] &= self.names([*values], scope, assigned)
        return self.functions[symbol]


def _holds_functions(function: ast.FunctionDef) -> bool:
    """Whether others stand inside, which may read its parameters."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.YieldFrom)
    return any(one is not function for one in each(function, kinds))


@lru_cache(maxsize=1024)
def _assigned_in_class(cls: ClassInfo) -> Mapping[str, list[ast.AST]]:
    """Values of local names and attributes, by name, over all methods."""
    found: dict[str, list[ast.AST]] = {}
    for owner in cls.mro:
        for name, values in _assignments(owner.node).items():
            found.setdefault(name, []).extend(values)
    return found


def _assignments(tree: ast.AST) -> Mapping[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for target, value in plain_bindings(tree):
        for name in walk(target):
            if isinstance(name, ast.Name):
                found.setdefault(name.id, []).append(value)
            elif isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
                found.setdefault(f"self.{name.attr}", []).append(value)
    return found
