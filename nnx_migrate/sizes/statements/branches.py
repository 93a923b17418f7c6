"""``if``: both sides, joined."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import join, join_by_presence
from nnx_migrate.abstract.values import Value
from nnx_migrate.sizes.chance import chance_sides, joined_by_chance
from nnx_migrate.sizes.expressions.conditions import truth
from nnx_migrate.sizes.flow import RAISE, Rest
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.narrowing import assume, narrow
from nnx_migrate.sizes.presence import ALWAYS, sides

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def run_branch(
    interpreter: Interpreter, statement: ast.If, frame: Frame
) -> tuple[str | None, Rest]:
    """Run an ``if``; conditions are returned when the rest only runs under them."""
    test = truth(interpreter, statement.test, frame)
    if isinstance(test, bool):
        return interpreter.run_block(statement.body if test else statement.orelse, frame)
    start = dict(frame.env)
    attributes = dict(frame.instance.attributes) if frame.instance else {}
    by_chance = chance_sides(interpreter, statement.test, frame) if test is None else None
    met, unmet = by_chance or sides(test, statement.test, frame)
    with (
        interpreter.on(met),
        narrow(interpreter.project, frame, statement.test, holds=True),
    ):
        first, after_first = interpreter.run_block(statement.body, frame)
    yes, yes_attributes = frame.env, dict(frame.instance.attributes) if frame.instance else {}
    frame.env = dict(start)
    if frame.instance:
        frame.instance.attributes.clear()
        frame.instance.attributes.update(attributes)
    with (
        interpreter.on(unmet),
        narrow(interpreter.project, frame, statement.test, holds=False),
    ):
        second, after_second = interpreter.run_block(statement.orelse, frame)
    no_attributes = dict(frame.instance.attributes) if frame.instance else {}
    if first is not None and second is not None:
        return first, ()
    if first is not None:  # the rest runs only when the test is false
        assume(interpreter.project, frame, statement.test, holds=False)
        interpreter.presence = {**interpreter.presence, **unmet.presence}
        return None, _beyond(first, unmet.condition, after_second)
    if second is not None:
        frame.env = yes
        _restore(frame, yes_attributes)
        assume(interpreter.project, frame, statement.test, holds=True)
        interpreter.presence = {**interpreter.presence, **met.presence}
        return None, _beyond(second, met.condition, after_first)
    by_test = (
        partial(join_by_presence, met.presence, unmet.presence)
        if test is None
        else partial(join, test)
    )
    either = joined_by_chance if by_chance else by_test
    frame.env = _merge(either, yes, frame.env)
    _restore(frame, _merge(partial(join, test), yes_attributes, no_attributes))
    return None, (
        *_implication(met.condition, after_first),
        *_implication(unmet.condition, after_second),
    )


def _beyond(end: str, test: Expr | None, after: Rest) -> Rest:
    """Conditions after a branch that does not end; an error in the other one is none of them."""
    return after if end == RAISE or test == ALWAYS else (test, *after)


def _implication(test: Expr | None, after: Rest) -> Rest:
    """What holds after a branch that some of its runs did not leave."""
    if not after or test == ALWAYS:  # chance may lead around it
        return ()
    if test is None or None in after:
        return (None,)
    met = [one.node for one in after if one is not None]
    goes_on = met[0] if len(met) == 1 else ast.BoolOp(ast.And(), met)
    return (Expr(ast.BoolOp(ast.Or(), [ex.negation(test).node, goes_on])),)


def _restore(frame: Frame, attributes: dict[str, Value]) -> None:
    if frame.instance is not None:
        frame.instance.attributes.clear()
        frame.instance.attributes.update(attributes)


def _merge(
    join: Callable[[Value, Value], Value], yes: dict[str, Value], no: dict[str, Value]
) -> dict[str, Value]:
    names = {**yes, **no}
    return {
        name: join(yes[name], no[name]) if name in yes and name in no else names[name]
        for name in names
    }
