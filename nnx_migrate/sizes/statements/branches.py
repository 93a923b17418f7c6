"""``if``: both sides, joined."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.expressions.conditions import truth
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.statements.flow import NOTHING, RAISE
from nnx_migrate.sizes.statements.narrowing import assume, narrowed
from nnx_migrate.sizes.values import Value, join

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def run_branch(
    interpreter: Interpreter, statement: ast.If, frame: Frame
) -> tuple[str | None, Expr | None]:
    """Run an ``if``; a condition is returned when the rest only runs under it."""
    test = truth(interpreter, statement.test, frame)
    if isinstance(test, bool):
        return interpreter.run(statement.body if test else statement.orelse, frame), NOTHING
    start = dict(frame.env)
    attributes = dict(frame.instance.attributes) if frame.instance else {}
    negated = ex.negation(test) if test else None
    with interpreter.under(test), narrowed(interpreter.project, frame, statement.test, holds=True):
        first = interpreter.run(statement.body, frame)
    yes, yes_attributes = frame.env, dict(frame.instance.attributes) if frame.instance else {}
    frame.env = dict(start)
    if frame.instance:
        frame.instance.attributes.clear()
        frame.instance.attributes.update(attributes)
    with (
        interpreter.under(negated),
        narrowed(interpreter.project, frame, statement.test, holds=False),
    ):
        second = interpreter.run(statement.orelse, frame)
    no_attributes = dict(frame.instance.attributes) if frame.instance else {}
    if first is not None and second is not None:
        return first, NOTHING
    if first is not None:  # the rest runs only when the test is false
        assume(interpreter.project, frame, statement.test, holds=False)
        return None, NOTHING if first == RAISE else negated
    if second is not None:
        frame.env = yes
        _restore(frame, yes_attributes)
        assume(interpreter.project, frame, statement.test, holds=True)
        return None, NOTHING if second == RAISE else test
    frame.env = _merged(test, yes, frame.env)
    _restore(frame, _merged(test, yes_attributes, no_attributes))
    return None, NOTHING


def _restore(frame: Frame, attributes: dict[str, Value]) -> None:
    if frame.instance is not None:
        frame.instance.attributes.clear()
        frame.instance.attributes.update(attributes)


def _merged(test: Expr | None, yes: dict[str, Value], no: dict[str, Value]) -> dict[str, Value]:
    names = {**yes, **no}
    return {
        name: join(test, yes[name], no[name]) if name in yes and name in no else names[name]
        for name in names
    }
