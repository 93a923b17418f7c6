"""Conditions over fields under which Linen's initial call reaches a submodule."""

from __future__ import annotations

import ast
from collections.abc import Collection
from itertools import combinations

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Use

Way = tuple[Expr | None, ...]  # conditions that all hold, each once; None: nobody knows which


def reached(uses: list[Use]) -> str | None:
    """Condition over fields without which no use happens; None when there is none.

    Conditions that ``__init__`` cannot evaluate, over sizes or the variables of loops, are left out.
    """
    if any(None in use.conditions for use in uses):
        return None
    kept = [[one for one in use.conditions if one is not None and not one.names] for use in uses]
    return text_of(simplest([(*dict.fromkeys(one),) for one in kept]))


def ways(uses: list[Use]) -> list[Way]:
    """The conditions under which each use happens, in the fewest words."""
    return simplest([(*dict.fromkeys(use.conditions),) for use in uses])


def text_of(found: list[Way]) -> str | None:
    """``a and b or c`` for the ways (a, b) and (c,); None where one of them is always open."""
    if not found or () in found:
        return None
    nodes = [_joined(ast.And(), [one.node for one in way if one is not None]) for way in found]
    return ast.unparse(_joined(ast.Or(), nodes))


def _joined(op: ast.boolop, nodes: list[ast.expr]) -> ast.expr:
    return nodes[0] if len(nodes) == 1 else ast.BoolOp(op, nodes)


def simplest(found: list[Way]) -> list[Way]:
    """The ways without those that another one covers: (a, b) beside (a,), (a, not b) and (a, b).

    ``if c: f(x)`` and ``if not c: f(y)`` are one way without a condition.
    """
    found = list({frozenset(way): way for way in found}.values())
    for one, other in combinations(found, 2):
        both = frozenset(one) ^ frozenset(other)
        if len(both) == 2 and None not in both:
            left, right = (part for part in both if part is not None)
            if ex.negation(left) == right or ex.negation(right) == left:
                common = tuple(part for part in one if part not in both)
                return simplest([way for way in found if way not in (one, other)] + [common])
    return [way for way in found if not any(frozenset(one) < frozenset(way) for one in found)]


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
