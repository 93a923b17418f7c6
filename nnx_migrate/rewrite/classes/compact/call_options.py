"""Constructor keywords that depend on the call (``deterministic=not train``) move to the call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nnx_migrate.constructs import layer_of
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.calls import with_arguments
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.classes.data import ConversionContext, Refused
from nnx_migrate.rewrite.classes.fields.late import late_arguments
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.taint import Replaced, Taint, tainted_name
from nnx_migrate.sizes.result import SiteKind
from nnx_migrate.source.modules import Parents
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

RULE = "call-time-argument"


@dataclass
class Moves:
    """What moves.

    Attributes:
      values: ids of the keyword values that leave a constructor.
      partials: calls of ``partial`` that lose keywords, by id.
      calls: keywords that a call gains, by id of the call.
      views: keywords under which a built submodule is called, by id of its constructor call.
      late: fields that a built submodule gets at the call, by id of its constructor call.
    """

    values: set[int] = field(default_factory=set)
    partials: dict[int, ast.Call] = field(default_factory=dict)
    calls: dict[int, list[ast.keyword]] = field(default_factory=dict)
    views: dict[int, list[ast.keyword]] = field(default_factory=dict)
    late: dict[int, Mapping[str, ast.expr]] = field(default_factory=dict)

    @property
    def late_values(self) -> set[int]:
        """Ids of the values of late fields, in whose place the constructor gets None."""
        return {id(value) for fields in self.late.values() for value in fields.values()}


def moves_of(
    project: Project,
    scope: Scope,
    method: ast.FunctionDef,
    items: Mapping[int, Item],
    taint: Taint,
    replaced: Replaced,
    context: ConversionContext,
) -> Moves:
    """Find the keywords that move, and the calls that take them."""
    moves = Moves()
    uses = _Uses(method)
    for item in items.values():
        symbol = item.site.symbol if item.site is not None else None
        movable = _movable(symbol)
        tainted = taint.at.get(id(item.call), frozenset())
        for keyword in _given(item.call, symbol):
            if keyword.arg in movable and tainted_name(keyword.value, tainted, replaced):
                moves.values.add(id(keyword.value))
                for call in uses.calls_of(item.call):
                    moves.calls.setdefault(id(call), []).append(keyword)
        late = late_arguments(project, item, context, tainted, replaced)
        if late:
            moves.late[id(item.call)] = late
            moves.values |= {id(value) for value in late.values()}
    everything = frozenset(_parameters(method))
    for node in walk(method):
        if isinstance(node, ast.Call) and _is_partial(project, scope, node):
            _move_partial(project, scope, node, uses, items, everything, replaced, moves)
    return moves


def _given(call: ast.Call, symbol: str | None) -> list[ast.keyword]:
    """The keywords of a constructor call, and a movable last positional argument as one."""
    layer, count = layer_of(symbol), len(call.args)
    name = layer.fields[count - 1] if layer and 0 < count <= len(layer.fields) else ""
    if name in _movable(symbol) and not isinstance(call.args[-1], ast.Starred):
        return [*call.keywords, ast.keyword(name, call.args[-1])]
    return call.keywords


def _movable(symbol: str | None) -> tuple[str, ...]:
    """Fields of a layer that its call takes too."""
    layer = layer_of(symbol)
    return () if layer is None else layer.at_call


def _parameters(method: ast.FunctionDef) -> list[str]:
    arguments = method.args
    plain = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return [one.arg for one in plain][1:]


def _is_partial(project: Project, scope: Scope, node: ast.Call) -> bool:
    return project.resolve(node.func, scope) == "functools.partial" and bool(node.args)


def _move_partial(
    project: Project,
    scope: Scope,
    node: ast.Call,
    uses: _Uses,
    items: Mapping[int, Item],
    tainted: frozenset[str],
    replaced: Replaced,
    moves: Moves,
) -> None:
    movable = _movable(project.resolve(node.args[0], scope))
    moving = [
        keyword
        for keyword in node.keywords
        if keyword.arg in movable and tainted_name(keyword.value, tainted, replaced)
    ]
    name = uses.bound_to(node)
    if not moving or name is None:
        return
    moves.partials[id(node)] = node
    moves.values |= {id(keyword.value) for keyword in moving}
    for item in items.values():
        site = item.site
        if site is None:
            continue
        if item.is_in_scope and _names(item.call, name):
            raise Refused(
                item.call,
                "a function outside the class builds from an argument that depends on the call",
                "pass the argument where the layer is called",
                RULE,
            )
        function = item.call.func
        if site.kind is SiteKind.FACTORY and isinstance(function, ast.Name) and function.id == name:
            for call in uses.calls_of(item.call):
                moves.calls.setdefault(id(call), []).extend(moving)
        elif any(_names(one, name) for one in (*item.call.args, *item.call.keywords)):
            moves.views.setdefault(id(item.call), []).extend(moving)


def _names(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in walk(node))


class _Uses:
    """Where a method calls what it built."""

    def __init__(self, method: ast.FunctionDef) -> None:
        self.parents = Parents(method)
        self.bindings: dict[str, list[ast.AST]] = {}
        self.loads: dict[str, list[ast.Name]] = {}
        for node in walk(method):
            if isinstance(node, ast.Name):
                target = self.loads if isinstance(node.ctx, ast.Load) else self.bindings
                target.setdefault(node.id, []).append(node)

    def bound_to(self, value: ast.AST) -> str | None:
        """The local name that holds ``value`` and nothing else."""
        match self.parents.of(value):
            case ast.Assign(targets=[ast.Name(id=name)]) if len(self.bindings[name]) == 1:
                return name
            case _:
                return None

    def calls_of(self, constructor: ast.Call) -> list[ast.Call]:
        """The calls of the built module.

        Raises:
          Refused: it is used otherwise than by calling it.
        """
        parent = self.parents.of(constructor)
        if isinstance(parent, ast.Call) and parent.func is constructor:
            return [parent]
        name = self.bound_to(constructor)
        if name is not None:
            loads = self.loads.get(name, [])
            calls = [self.parents.of(load) for load in loads]
            if all(
                isinstance(call, ast.Call) and call.func is load
                for call, load in zip(calls, loads, strict=True)
            ):
                return [call for call in calls if isinstance(call, ast.Call)]
        raise Refused(
            constructor,
            "a constructor argument depends on the call, and the layer is not just called",
            "pass the argument where the layer is called",
            RULE,
        )


def with_keywords(call: ast.Call, keywords: list[ast.keyword]) -> Callable[[Renderer], Expression]:
    """Edit: the call with more keywords."""

    def make(renderer: Renderer) -> Expression:
        plain = renderer.without(call).inner(call)
        found: Expression = with_arguments(plain, map(renderer.keyword, keywords), renderer.unit)
        return found

    return make


def without_keywords(call: ast.Call, values: set[int]) -> Callable[[Renderer], Expression]:
    """Edit: the call without the keywords whose values are in ``values``."""

    def make(renderer: Renderer) -> Expression:
        kept = [one for one in call.keywords if id(one.value) not in values]
        given = [*map(renderer.argument, call.args), *map(renderer.keyword, kept)]
        found: Expression = made_call(renderer.render(call.func), *given, unit=renderer.unit)
        return found

    return make
