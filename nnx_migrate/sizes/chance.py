"""Tests that a random number of Python's decides: ``if not deterministic and random.random() < self.layerdrop``.

Linen's init makes variables for what the number of that very call reaches. Nobody counts on a layer that is
skipped by chance: each side has its variables wherever some number leads to it, and a person should look.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Unknown
from nnx_migrate.sizes.expressions.conditions import truth
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.presence import ALWAYS, Side, presence
from nnx_migrate.source.walking import each

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

BY_CHANCE = "a random number decides what runs here; the NNX module has the variables of both sides"


def chance_sides(
    interpreter: Interpreter, test: ast.expr, frame: Frame
) -> tuple[Side, Side] | None:
    """The branches of a test that a random number decides, each as if the number led there; None for others."""
    if not any(_is_draw(one, frame) for one in each(test, ast.Compare)):
        return None
    conditions = []
    for holds in (True, False):
        found = _leaning(interpreter, test, frame, holds)
        if isinstance(found, bool):
            conditions.append(ALWAYS if found is holds else None)
        else:
            conditions.append(found if found is None or holds else ex.negation(found))
    if None in conditions:
        return None
    interpreter.ask(test, BY_CHANCE)
    met, unmet = conditions
    return (
        Side(met, presence(test, frame, holds=True)),
        Side(unmet, presence(test, frame, holds=False)),
    )


def _leaning(
    interpreter: Interpreter, node: ast.expr, frame: Frame, value: bool
) -> bool | Expr | None:
    """The truth of a test whose comparisons with random numbers make it ``value`` if they can."""
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = [_leaning(interpreter, one, frame, value) for one in values]
            ends = not isinstance(op, ast.And)
            if ends in parts:
                return ends
            open_parts = [one for one in parts if not isinstance(one, bool)]
            known = [one.node for one in open_parts if one is not None]
            if not open_parts or len(known) < len(open_parts):
                return None if open_parts else not ends
            return Expr(known[0] if len(known) == 1 else ast.BoolOp(op, known))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            found = _leaning(interpreter, operand, frame, not value)
            if found is None or isinstance(found, bool):
                return None if found is None else not found
            return ex.negation(found)
        case ast.Compare() if _is_draw(node, frame):
            return value
    return truth(interpreter, node, frame)


def _is_draw(node: ast.Compare, frame: Frame) -> bool:
    """Whether a comparison has a local that holds a random number."""
    values = (
        frame.env.get(one.id) for one in (node.left, *node.comparators) if isinstance(one, ast.Name)
    )
    return any(isinstance(one, Unknown) and one.is_draw for one in values)
