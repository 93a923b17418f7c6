"""Calls that a method makes whenever it is called, and whose loop makes in every round."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from nnx_migrate.source.modules import Parents
from nnx_migrate.source.walking import each, walk

_PERHAPS = (
    *(ast.If, ast.IfExp, ast.BoolOp, ast.For, ast.While, ast.Try, ast.Match, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.FunctionDef),
)
_LEAVING = (ast.Return, ast.Break, ast.Continue)
_PASSING = frozenset({"enumerate", "list", "reversed", "tuple", "zip"})


def is_surely_called(parents: Parents, item: ast.expr) -> bool:
    """Whether every call of the function around ``item`` calls it."""
    call, function = parents.of(item), parents.function(item)
    is_call = isinstance(call, ast.Call) and call.func is item
    return is_call and isinstance(function, ast.FunctionDef) and _is_sure(parents, item, function)


def is_looped_over(parents: Parents, items: ast.expr) -> bool:
    """Whether ``items`` is what a loop or a comprehension goes through."""
    return isinstance(parents.of(_whole(parents, items)), ast.For | ast.comprehension)


def are_only_counted(parents: Parents, items: ast.expr) -> bool:
    """Whether a comprehension has a round for each item, and looks at none: ``[f() for _ in items]``."""
    match parents.of(items):
        case ast.comprehension(target=ast.Name(id=name)) as loop if loop.iter is items:
            loads = each(parents.of(loop), ast.Name)  # type: ignore[arg-type]
            return not any(one.id == name and isinstance(one.ctx, ast.Load) for one in loads)
    return False


def are_surely_called(parents: Parents, items: ast.expr) -> bool:
    """Whether every call of the function around a loop over ``items`` calls each of them."""
    whole = _whole(parents, items)
    loop, function = parents.of(whole), parents.function(items)
    if not isinstance(loop, ast.For) or loop.iter is not whole:
        return False
    name = _variable(loop.target, whole, items)
    called = (one for one in each(loop, ast.Call) if isinstance(one.func, ast.Name))
    return (
        isinstance(function, ast.FunctionDef)
        and name is not None
        and _is_sure(parents, loop, function)
        and any(one.func.id == name and _is_sure(parents, one, loop) for one in called)  # type: ignore[attr-defined]
    )


def _whole(parents: Parents, items: ast.expr) -> ast.expr:
    """What a loop goes through that hands out the items: ``zip(items, others)``."""
    match parents.of(items):
        case ast.Call(func=ast.Name(id=name)) as call if call.func is not items:
            return _whole(parents, call) if name in _PASSING else items
    return items


def _variable(target: ast.expr, whole: ast.expr, items: ast.expr) -> str | None:
    """The name under which a loop over ``whole`` has an item."""
    match whole:
        case _ if whole is items:
            return target.id if isinstance(target, ast.Name) else None
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            is_pair = isinstance(target, ast.Tuple) and len(target.elts) == 2
            return _variable(target.elts[1], inner, items) if is_pair else None  # type: ignore[attr-defined]
        case ast.Call(func=ast.Name(id="zip"), args=args):
            parts = target.elts if isinstance(target, ast.Tuple) else []
            found = (_variable(to, one, items) for to, one in zip(parts, args, strict=False))
            return next((one for one in found if one is not None), None)
        case ast.Call(args=[inner]):
            return _variable(target, inner, items)
    return None


def _is_sure(parents: Parents, node: ast.AST, top: ast.FunctionDef | ast.For) -> bool:
    """Whether ``node`` is evaluated whenever the body of ``top`` is."""
    above = parents.above(node)
    inside = above[: above.index(top)]
    if any(isinstance(one, _PERHAPS) for one in inside):
        return False
    return not any(_may_leave(one) for one in _before(top.body, [node, *inside]))


def _before(body: Sequence[ast.stmt], around: Sequence[ast.AST]) -> list[ast.stmt]:
    """The statements of a block in front of the one that is among ``around``."""
    position = next((n for n, one in enumerate(body) if one in around), 0)
    return list(body[:position])


def _may_leave(statement: ast.stmt) -> bool:
    return any(isinstance(one, _LEAVING) for one in walk(statement))
