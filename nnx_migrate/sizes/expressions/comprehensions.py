"""Comprehensions, and what a loop header runs over."""

from __future__ import annotations

import ast
import functools
from contextlib import ExitStack
from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import Extended, Repeated, Sequence, Unknown, Value, join
from nnx_migrate.sizes.expressions.list_parts import check_filter
from nnx_migrate.sizes.frames import Frame, Loop

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def iterate(
    interpreter: Interpreter, node: ast.expr, target: ast.expr, frame: Frame, loop_node: ast.AST
) -> list[Value] | tuple[Value, Loop]:
    """What a loop runs over: items one by one, or one abstract item for all iterations."""
    from nnx_migrate.sizes.iteration import iteration_of
    from nnx_migrate.sizes.rounds import note_rounds

    value = interpreter.evaluate(node, frame)
    found = iteration_of(interpreter, value, target, loop_node, foreign=not frame.own)
    if not isinstance(found, list):
        note_rounds(found[1], value)
    return found


def read_comprehension(
    interpreter: Interpreter,
    node: ast.ListComp | ast.GeneratorExp | ast.SetComp,
    frame: Frame,
) -> Value:
    """Items one by one when they are known, else one item for all."""
    from nnx_migrate.sizes.assignment import assign

    generator = node.generators[0]
    if len(node.generators) != 1:
        return Unknown("a nested comprehension")
    iteration = iterate(interpreter, generator.iter, generator.target, frame, node)
    saved = dict(frame.env)
    try:
        if isinstance(iteration, list):
            items = []
            for item in iteration:
                assign(interpreter, generator.target, item, frame)
                items.append(_item(interpreter, node, generator.ifs, frame))
            return _kept(items, node)
        value, loop = iteration
        interpreter.loops.append(loop)
        try:
            assign(interpreter, generator.target, value, frame)
            _, item = _item(interpreter, node, generator.ifs, frame)
        finally:
            interpreter.loops.pop()
        length = None if generator.ifs else loop.rounds
        return Repeated(item, length, node, dict(loop.last))
    finally:
        frame.env = saved


def _item(
    interpreter: Interpreter,
    node: ast.ListComp | ast.GeneratorExp | ast.SetComp,
    tests: list[ast.expr],
    frame: Frame,
) -> tuple[bool | None, Value]:
    """Whether the bound item passes the filters (None: nobody knows), and its value if it does."""
    from nnx_migrate.sizes.expressions.conditions import truth
    from nnx_migrate.sizes.narrowing import assume

    answers = [truth(interpreter, test, frame) for test in tests]
    if False in answers:
        return False, Unknown("an item that is left out")
    with ExitStack() as filters:
        for answer, test in zip(answers, tests, strict=True):
            assume(interpreter.project, frame, test, holds=True)
            if not isinstance(answer, bool):
                filters.enter_context(interpreter.under(answer))
        value = interpreter.evaluate(node.elt, frame)
    if set(answers) <= {True}:
        return True, value
    check_filter(interpreter, node, value)
    return None, value


def _kept(items: list[tuple[bool | None, Value]], node: ast.expr) -> Value:
    """The items that are certainly there, then what may follow from the first doubtful one on."""
    possible = [(kept, value) for kept, value in items if kept is not False]
    doubtful = next((i for i, (kept, _) in enumerate(possible) if kept is None), None)
    values = tuple(value for _, value in possible)
    if doubtful is None:
        return Sequence(values, is_list=True)
    rest = functools.reduce(functools.partial(join, None), values[doubtful:])
    repeated = Repeated(rest, None, node)
    return Extended(values[:doubtful], repeated) if doubtful else repeated
