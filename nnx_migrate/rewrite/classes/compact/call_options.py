"""Constructor keywords that depend on the call (``deterministic=not train``) move to the call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping

from nnx_migrate.constructs import layer_of
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.calls import with_arguments
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.classes.compact.call_variables import parameters_of
from nnx_migrate.rewrite.classes.compact.local_uses import LocalUses
from nnx_migrate.rewrite.classes.compact.moves import Moves, refusal
from nnx_migrate.rewrite.classes.compact.partial_moves import PartialMoves
from nnx_migrate.rewrite.classes.data import ConversionContext
from nnx_migrate.rewrite.classes.fields.call_fields import call_fields, per_call_arguments
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.questions import ANSWER
from nnx_migrate.rewrite.classes.reading.taint import Replaced, Taint, tainted_name
from nnx_migrate.source.bindings import bindings_below, changed_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.growth import grown
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk


def moves_of(
    project: Project,
    scope: Scope,
    method: ast.FunctionDef,
    items: Mapping[int, Item],
    taint: Taint,
    init_texts: Replaced,
    context: ConversionContext,
    cls: ClassInfo,
) -> Moves:
    """Find the keywords that move, and the calls that take them."""
    moves = Moves()
    uses = LocalUses(method)
    for item in items.values():
        tainted = taint.at.get(id(item.call), frozenset())
        symbol = item.site.symbol if item.site is not None else None
        movable = _movable(project, scope, symbol, item.call.func, context)
        keywords = _constructor_keywords(item.call, symbol)
        moving = _moving(keywords, movable, tainted, init_texts)
        if moving and (layer_of(symbol) or not uses.fault(item.call, moving, item.call)):
            uses.move(item.call, moving, item.call, moves)
        per_call = per_call_arguments(project, item, context, tainted, init_texts)
        per_call = {name: one for name, one in per_call.items() if id(one) not in moves.values}
        if per_call:
            moves.per_call_fields[id(item.call)] = per_call
            moves.values |= {id(value) for value in per_call.values()}
    everything = _of_the_call(method, init_texts)
    partials = PartialMoves(project, scope, cls, uses, items, moves)
    for node in walk(method):
        if isinstance(node, ast.Call) and _is_partial(project, scope, node):
            symbol = project.resolve(node.args[0], scope)
            movable = _movable(project, scope, symbol, node.args[0], context)
            moving = _moving(node.keywords, movable, everything, init_texts)
            if moving:
                partials.move(node, moving, is_layer=layer_of(symbol) is not None)
    _check_copies(items, moves, context)
    return moves


def _check_copies(items: Mapping[int, Item], moves: Moves, context: ConversionContext) -> None:
    """Refuse copies of modules with lazy ones: a lazy module is known by what the explicit one holds.

    Raises:
      Refused: one is called as a view, or with fields of the call.
    """
    for item in items.values():
        is_copied = id(item.call) in moves.views or id(item.call) in moves.per_call_fields
        if is_copied and item.site is not None and context.is_lazy_inside(item.site):
            raise refusal(item.call, "it holds lazy submodules, and the call decides its fields")


def _moving(
    keywords: Iterable[ast.keyword],
    movable: Collection[str],
    tainted_names: frozenset[str],
    known_texts: Replaced,
) -> list[ast.keyword]:
    """Those of the keywords that depend on the call and that a call takes, too."""
    return [
        one
        for one in keywords
        if one.arg in movable and tainted_name(one.value, tainted_names, known_texts)
    ]


def _constructor_keywords(call: ast.Call, symbol: str | None) -> list[ast.keyword]:
    """The keywords of a constructor call, and a movable last positional argument as one."""
    layer, count = layer_of(symbol), len(call.args)
    name = layer.fields[count - 1] if layer and 0 < count <= len(layer.fields) else ""
    if layer and name in layer.at_call and not isinstance(call.args[-1], ast.Starred):
        return [*call.keywords, ast.keyword(name, call.args[-1])]
    return call.keywords


def _movable(
    project: Project, scope: Scope, symbol: str | None, name: ast.expr, context: ConversionContext
) -> Collection[str]:
    """Fields of a layer, or of a class that is called by its own name, that its call takes too."""
    layer = layer_of(symbol)
    if layer is not None:
        return layer.at_call
    cls = project.linen.get(symbol or "")
    if cls is None or project.resolve(name, scope) != symbol:
        return ()
    if cls.name not in context.explicit_classes and cls.name not in context.lazy:
        return ()
    fact_arguments = {one.argument for one in context.new_arguments.get(cls.name, ()) if one.fact}
    return call_fields(project, cls) - fact_arguments


def _of_the_call(method: ast.FunctionDef, init_texts: Replaced) -> frozenset[str]:
    """The parameters of a method, answers, and the local names that may hang on them: ``off = not train``."""
    pairs = [*bindings_below(method)]
    return grown(
        (*parameters_of(method), ANSWER),
        lambda names: (
            name
            for target, value in pairs
            if _reads(value, names, init_texts)
            for name in changed_names(target)
        ),
    )


def _reads(node: ast.AST, names: Collection[str], init_texts: Replaced) -> bool:
    return any(
        (isinstance(one, ast.Name) and one.id in names) or ANSWER in init_texts.get(id(one), ())
        for one in walk(node)
    )


def _is_partial(project: Project, scope: Scope, node: ast.Call) -> bool:
    return project.resolve(node.func, scope) == "functools.partial" and bool(node.args)


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
        keywords = [one for one in call.keywords if id(one.value) not in values]
        arguments = [*map(renderer.argument, call.args), *map(renderer.keyword, keywords)]
        found: Expression = made_call(renderer.render(call.func), *arguments, unit=renderer.unit)
        return found

    return make
