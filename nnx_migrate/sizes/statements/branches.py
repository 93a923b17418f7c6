"""``if``: both sides, joined, and what the test says about None."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.expressions.conditions import truth
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.statements.flow import NOTHING, RAISE
from nnx_migrate.sizes.values import Value, join, without_none

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
    negated = Expr(ast.UnaryOp(ast.Not(), test.node)) if test else None
    with interpreter.under(test), _narrowed(frame, statement.test, holds=True):
        first = interpreter.run(statement.body, frame)
    yes, yes_attributes = frame.env, dict(frame.instance.attributes) if frame.instance else {}
    frame.env = dict(start)
    if frame.instance:
        frame.instance.attributes.clear()
        frame.instance.attributes.update(attributes)
    with interpreter.under(negated), _narrowed(frame, statement.test, holds=False):
        second = interpreter.run(statement.orelse, frame)
    no_attributes = dict(frame.instance.attributes) if frame.instance else {}
    if first is not None and second is not None:
        return first, NOTHING
    if first is not None:  # the rest runs only when the test is false
        return None, NOTHING if first == RAISE else negated
    if second is not None:
        frame.env = yes
        _restore(frame, yes_attributes)
        return None, NOTHING if second == RAISE else test
    frame.env = _merged(test, yes, frame.env)
    _restore(frame, _merged(test, yes_attributes, no_attributes))
    return None, NOTHING


@contextmanager
def _narrowed(frame: Frame, test: ast.expr, *, holds: bool) -> Iterator[None]:
    """Run a block in which the names that ``test`` compares with None are known not to be None."""
    names = _present(test, holds, frame.tests)
    before = {name: frame.env[name] for name in names if name in frame.env}
    inside = {name: without_none(value) for name, value in before.items()}
    frame.env.update(inside)
    try:
        yield
    finally:
        for name, value in inside.items():
            if frame.env.get(name) is value:
                frame.env[name] = before[name]


def _present(test: ast.expr, holds: bool, tests: dict[str, ast.expr]) -> list[str]:
    """Names that are not None when ``test`` holds, or when it does not."""
    match test:
        case ast.Name(id=name) if name in tests:
            return _present(tests[name], holds, {})
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is holds:
            return [name for one in values for name in _present(one, holds, tests)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _present(operand, not holds, tests)
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op], comparators=[other]
        ) if isinstance(other, ast.Constant) and other.value is None:
            return [name] if isinstance(op, ast.IsNot) is holds else []
        case _:
            return []


def note_test(targets: list[ast.expr], value: ast.expr, frame: Frame) -> None:
    """Remember ``known = x is not None``, until one of its names changes."""
    names = {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    for local, test in list(frame.tests.items()):
        read = {one.id for one in ast.walk(test) if isinstance(one, ast.Name)}
        if names & {local, *read}:
            del frame.tests[local]
    if len(names) == 1 and isinstance(value, ast.Compare | ast.BoolOp):
        frame.tests[names.pop()] = value


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
