"""Conditions over fields under which Linen's initial call reaches a submodule."""

from __future__ import annotations

import ast
from collections.abc import Collection
from itertools import combinations

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.values import Use


def reached(uses: list[Use]) -> str | None:
    """Condition over fields without which no use happens; None when there is none.

    Conditions that ``__init__`` cannot evaluate, over sizes or the variables of loops, are left out.
    """
    tests: list[ast.expr] = []
    for use in uses:
        if not use.conditions or None in use.conditions:
            return None
        conditions = [one for one in use.conditions if one is not None and not one.names]
        if not conditions:
            return None
        nodes = list({one.key: one.node for one in conditions}.values())
        tests.append(nodes[0] if len(nodes) == 1 else ast.BoolOp(ast.And(), nodes))
    unique = list({ast.unparse(one): one for one in tests}.values())
    if not unique:
        return None
    if len(unique) == 2 and _opposite(*unique):
        return None
    return ast.unparse(unique[0] if len(unique) == 1 else ast.BoolOp(ast.Or(), unique))


def in_some_rounds(uses: list[Use], variables: Collection[str]) -> bool:
    """Whether every use hangs on the variable of a loop, and no two of them on opposite tests."""
    tests = [
        frozenset(one for one in use.conditions if one is not None and one.names & {*variables})
        for use in uses
    ]
    split = any(
        len(one ^ other) == 2 and frozenset(map(ex.negation, one ^ other)) == one ^ other
        for one, other in combinations(tests, 2)
    )
    return bool(tests) and all(tests) and not split


def _opposite(one: ast.expr, two: ast.expr) -> bool:
    texts = {ast.unparse(one), ast.unparse(two)}
    return any(
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.Not)
        and ast.unparse(node.operand) in texts
        for node in (one, two)
    )
