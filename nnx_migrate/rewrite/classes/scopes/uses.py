"""What is done with a submodule that has no scope of its own."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.classes.scopes.finding import Sharing, refusal, stores
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.parents import Parents
from nnx_migrate.source.walking import walk


def check_uses(cls: ClassInfo, sharing: Sharing) -> None:
    """The submodule is built once, whatever the call is given, and only called or asked."""
    parents = Parents(sharing.method)
    if not is_straight(parents, sharing.call) or leaves_before(sharing.method, sharing.call):
        raise refusal(sharing.call, "a submodule that shares the scope is built under a condition")
    if sharing.holder is None:
        if parents.called_by(sharing.call) is None:
            raise refusal(sharing.call, "a submodule that shares the scope is handed on")
        return
    if stores(cls, sharing.method, sharing.holder) != (sharing.field is None):
        raise refusal(sharing.call, f"{sharing.holder}, which shares the scope, is bound again")
    called = False
    for use, method in uses(cls, sharing):
        inside = Parents(method)
        owner = inside.owner_of(use)
        if owner is None:
            raise refusal(use, f"{sharing.holder}, which shares the scope, is handed on")
        is_first = method is sharing.method or method.name == "__call__"
        called |= is_first and _is_certain(inside, owner, method)
    if not called:
        raise refusal(sharing.call, "a submodule that shares the scope may never be called")


_STRAIGHT = (
    *(ast.Assign, ast.AnnAssign, ast.Return, ast.Expr, ast.Call, ast.keyword, ast.Starred),
    *(ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Subscript, ast.AugAssign),
)


def is_straight(parents: Parents, node: ast.AST) -> bool:
    """Whether the method evaluates ``node`` once, and whatever it is given."""
    *inside, _ = parents.above(node)
    return all(isinstance(one, _STRAIGHT) for one in inside)


def _is_certain(parents: Parents, owner: ast.expr, method: ast.FunctionDef) -> bool:
    """Whether the method comes to a call of the submodule, whatever it is given."""
    is_call = isinstance(owner, ast.Call)
    return is_call and is_straight(parents, owner) and not leaves_before(method, owner)


def leaves_before(method: ast.FunctionDef, node: ast.expr) -> bool:
    """Whether the method may return before it evaluates ``node``."""
    place = (node.lineno, node.col_offset)
    return any(
        isinstance(one, ast.Return | ast.Raise | ast.Yield | ast.YieldFrom | ast.Await)
        and (one.lineno, one.col_offset) < place
        and all(inner is not node for inner in walk(one))
        for one in walk(method)
    )


def uses(cls: ClassInfo, sharing: Sharing) -> list[tuple[ast.expr, ast.FunctionDef]]:
    """Reads of the submodule by its holder, in source order, with the method."""
    holder = sharing.holder or ""
    marked = {id(one) for mark in sharing.marks for one in walk(mark)}
    methods = [*cls.methods.values()] if "." in holder else [sharing.method]
    found = [
        (one, method)
        for method in methods
        for one in walk(method)
        if isinstance(one, ast.Name | ast.Attribute)
        and isinstance(one.ctx, ast.Load)
        and id(one) not in marked
        and ast.unparse(one) == holder
    ]
    return sorted(found, key=lambda pair: (pair[0].lineno, pair[0].col_offset))
