"""Tests of a local that holds a random number of Python's: ``if not deterministic and p < self.layerdrop``.

Linen's init makes variables for what the number of that very call reaches. Nobody counts on a layer that is
skipped by chance: each side has its variables wherever some number leads to it, and a person should look.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import join
from nnx_migrate.abstract.questions import is_none
from nnx_migrate.abstract.values import Sequence, Unknown, Value
from nnx_migrate.sizes.expressions.conditions import join_truths, truth
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
    met = _leaning(interpreter, test, frame, True)
    unmet = _negate(_leaning(interpreter, test, frame, False))
    if not met or not unmet:
        return None
    interpreter.ask(test, BY_CHANCE)
    return _side(met, test, frame, holds=True), _side(unmet, test, frame, holds=False)


def joined_by_chance(yes: Value, no: Value) -> Value:
    """The value after such a test: that of the side which has one, where the other has nothing but None.

    Example: ``out = (None, None)`` where a layer is skipped, ``out = layer(x)`` where it runs. What follows
    cannot take None for an array, so its sizes are those of ``layer(x)``.
    """
    match _is_nothing(yes), _is_nothing(no):
        case True, False:
            return no
        case False, True:
            return yes
    return join(None, yes, no)


def _is_nothing(value: Value) -> bool:
    if isinstance(value, Sequence):
        return bool(value.items) and all(_is_nothing(one) for one in value.items)
    return is_none(value) is True


def _side(condition: Expr | Literal[True], test: ast.expr, frame: Frame, *, holds: bool) -> Side:
    known = ALWAYS if condition is True else condition
    return Side(known, presence(test, frame, holds=holds))


def _leaning(
    interpreter: Interpreter, node: ast.expr, frame: Frame, value: bool
) -> bool | Expr | None:
    """The truth of a test whose comparisons with random numbers make it ``value`` if they can."""
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = [_leaning(interpreter, one, frame, value) for one in values]
            return join_truths(parts, is_and=isinstance(op, ast.And))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _negate(_leaning(interpreter, operand, frame, not value))
        case ast.Compare() if _is_draw(node, frame):
            return value
    return truth(interpreter, node, frame)


def _negate(condition: bool | Expr | None) -> bool | Expr | None:
    return (
        ex.negation(condition)
        if isinstance(condition, Expr)
        else None
        if condition is None
        else not condition
    )


def _is_draw(node: ast.Compare, frame: Frame) -> bool:
    """Whether a comparison has a local that holds a random number."""
    values = (
        frame.env.get(one.id) for one in (node.left, *node.comparators) if isinstance(one, ast.Name)
    )
    return any(isinstance(one, Unknown) and one.is_draw for one in values)
