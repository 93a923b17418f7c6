"""Conditions over fields under which Linen's initial call reaches a submodule."""

from __future__ import annotations

import ast

from nnx_migrate.sizes.values import Use


def reached(uses: list[Use]) -> str | None:
    """Condition over fields under which some use happens; None when always or unknown."""
    tests: list[ast.expr] = []
    for use in uses:
        if not use.conditions or None in use.conditions:
            return None
        conditions = [one for one in use.conditions if one is not None]
        if any(one.names for one in conditions):
            return None
        nodes = list({one.key: one.node for one in conditions}.values())
        tests.append(nodes[0] if len(nodes) == 1 else ast.BoolOp(ast.And(), nodes))
    unique = list({ast.unparse(one): one for one in tests}.values())
    if not unique:
        return None
    if len(unique) == 2 and _opposite(*unique):
        return None
    return ast.unparse(unique[0] if len(unique) == 1 else ast.BoolOp(ast.Or(), unique))


def _opposite(one: ast.expr, two: ast.expr) -> bool:
    texts = {ast.unparse(one), ast.unparse(two)}
    return any(
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.Not)
        and ast.unparse(node.operand) in texts
        for node in (one, two)
    )
