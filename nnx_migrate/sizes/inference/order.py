"""How many submodules of a class are numbered before a call, when the text alone tells."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, walk

Counts = Mapping[int, int | None]  # by id of a call: how many it numbers, None when nobody knows
_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Assert)
_MAYBE = (
    ast.IfExp,
    ast.BoolOp,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


def method_with(classes: Iterable[ClassInfo], call: ast.Call) -> ast.FunctionDef | None:
    """The method that holds a call."""
    methods = (one for cls in classes for one in cls.methods.values())
    return next((one for one in methods if any(n is call for n in walk(one))), None)


def number_of(function: ast.FunctionDef, counts: Counts, call: ast.Call) -> int | None:
    """How many submodules are numbered before ``call`` runs; None when the text does not tell."""
    total, is_there = _of_block(function.body, counts, call)
    return total if is_there else None


def total_of(function: ast.FunctionDef, counts: Counts) -> int | None:
    """How many submodules one call of a function numbers; None when the text does not tell."""
    returns = each(function, ast.Return)
    if any(one is not function.body[-1] for one in returns):
        return None  # what comes after it may not run
    total, _ = _of_block(function.body, counts, None)
    return total


def _of_block(
    body: Sequence[ast.stmt], counts: Counts, call: ast.Call | None
) -> tuple[int | None, bool]:
    """The number over the statements up to ``call``, and whether it is among them."""
    total: int | None = 0
    for statement in body:
        more, is_there = _of_statement(statement, counts, call)
        total = None if total is None or more is None else total + more
        if is_there:
            return total, True
    return total, False


def _of_statement(
    statement: ast.stmt, counts: Counts, call: ast.Call | None
) -> tuple[int | None, bool]:
    if isinstance(statement, ast.If):
        head, in_head = _of_expression(statement.test, counts, call)
        if in_head or head is None:
            return head, in_head
        one, in_body = _of_block(statement.body, counts, call)
        two, in_orelse = _of_block(statement.orelse, counts, call)
        if in_body or in_orelse:
            return _sum(head, one if in_body else two), True
        return (_sum(head, one) if one == two else None), False
    if isinstance(statement, _PLAIN):
        return _of_expression(statement, counts, call)
    return _unknown(statement, counts, call)


def _of_expression(node: ast.AST, counts: Counts, call: ast.Call | None) -> tuple[int | None, bool]:
    """The number in Python's order of evaluation: a call after its function and arguments."""
    if isinstance(node, _MAYBE):
        return _unknown(node, counts, call)
    total: int | None = 0
    for child in ast.iter_child_nodes(node):
        more, is_there = _of_expression(child, counts, call)
        total = _sum(total, more)
        if is_there:
            return total, True
    if node is call:
        return total, True
    return _sum(total, counts.get(id(node), 0)), False


def _unknown(node: ast.AST, counts: Counts, call: ast.Call | None) -> tuple[int | None, bool]:
    """What runs a number of times that nobody knows."""
    inside = list(walk(node))
    is_there = any(one is call for one in inside)
    numbers = any(counts.get(id(one), 0) != 0 for one in inside)
    return (None if is_there or numbers else 0), is_there


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
