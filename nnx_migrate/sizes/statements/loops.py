"""``for``: the items one by one, or one abstract round for all of them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes.expressions.comprehensions import iterate
from nnx_migrate.sizes.frames import Frame, Loop
from nnx_migrate.sizes.statements.assignment import assign
from nnx_migrate.sizes.statements.carried import (
    keep_last,
    lost_sizes,
    moved_sizes,
    restore_to,
    run_carried,
    run_round,
    take_snapshot,
)
from nnx_migrate.sizes.statements.flow import RETURN
from nnx_migrate.sizes.values import Array, Extended, Repeated, Sequence, Unknown, Value

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def run_loop(interpreter: Interpreter, statement: ast.For, frame: Frame) -> str | None:
    """Run a ``for`` loop; what ended the block early, or None."""
    iteration = iterate(interpreter, statement.iter, statement.target, frame, statement)
    if isinstance(iteration, list):  # few items, known one by one
        return _run_items(interpreter, statement, frame, iteration)
    value, loop = iteration
    if loop.first:
        _run_items(interpreter, statement, frame, loop.first)
    if not interpreter.loops:  # inside a loop the size may differ from round to round
        _name_unknown(frame, statement)
    start, before = dict(frame.env), take_snapshot(interpreter)
    run_round(interpreter, statement, frame, value, loop)
    problems: list[str] = []
    moved = moved_sizes(start, frame.env, problems) | lost_sizes(start, frame)
    interpreter.problems.extend((statement, problem) for problem in problems)
    while moved:
        restore_to(interpreter, before)
        kept = run_carried(interpreter, statement, frame, value, loop, start, moved)
        if kept == moved:
            break
        moved = kept
        if not moved:  # every size came back as it was: one plain pass says it all
            restore_to(interpreter, before)
            frame.env = dict(start)
            run_round(interpreter, statement, frame, value, loop)
            for name in start:
                keep_last(start, frame.env, name)
    _leave(frame, statement, loop)
    _settle_lists(frame, start, loop)
    return None


def _leave(frame: Frame, statement: ast.For, loop: Loop) -> None:
    """After a loop its variables mean the last round: sizes that read them say so."""
    inside = {*loop.last, *(loop.variable(one) for one in target_variables(statement.target))}
    for name, value in frame.env.items():
        if isinstance(value, Array) and any(one and one.names & inside for one in value.tail):
            sizes = [one and ex.substitute(one, loop.last) for one in value.tail]
            tail = tuple(None if one and one.names & inside else one for one in sizes)
            frame.env[name] = replace(value, tail=tail)


def target_variables(target: ast.expr) -> set[str]:
    """Names that a loop target binds."""
    return {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}


def _name_unknown(frame: Frame, statement: ast.For) -> None:
    """Give unknown last sizes that enter a loop a name: one argument can hand each of them in."""
    if not frame.own:
        return
    read = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}
    for name in sorted(read & frame.env.keys()):
        array = frame.env[name] if isinstance(frame.env[name], Array) else None
        if isinstance(array, Array) and array.rank != 0 and array.axis(-1) is None:
            frame.env[name] = array.with_last(ex.opaque_size(name, statement.lineno))


def _run_items(
    interpreter: Interpreter, statement: ast.For, frame: Frame, items: list[Value]
) -> str | None:
    for item in items:
        assign(interpreter, statement.target, item, frame)
        if interpreter.run(statement.body, frame) == RETURN:
            return RETURN
    return None


def _settle_lists(frame: Frame, start: dict[str, Value], loop: Loop) -> None:
    """A list that grew by one item in the loop's single pass holds one item per iteration."""
    for name, value in frame.env.items():
        before = start.get(name)
        if isinstance(value, Sequence) and isinstance(before, Sequence) and value.is_list:
            added = value.items[len(before.items) :]
            if len(added) == 1:
                rest = Repeated(added[0], None, loop.node, dict(loop.last))
                frame.env[name] = Extended(before.items, rest) if before.items else rest
            elif added:
                frame.env[name] = Unknown("a list that a loop extends")
