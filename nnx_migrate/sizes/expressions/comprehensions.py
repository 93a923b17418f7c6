"""Comprehensions, and what a loop header runs over."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.sizes.frames import Frame, Loop
from nnx_migrate.sizes.values import Repeated, Sequence, Unknown, Value

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def iterate(
    interpreter: Interpreter, node: ast.expr, target: ast.expr, frame: Frame, loop_node: ast.AST
) -> list[Value] | tuple[Value, Loop]:
    """What a loop runs over: items one by one, or one abstract item for all iterations."""
    from nnx_migrate.sizes.iteration import iteration_of

    value = interpreter.evaluate(node, frame)
    return iteration_of(interpreter, value, target, loop_node, foreign=not frame.own)


def read_comprehension(
    interpreter: Interpreter,
    node: ast.ListComp | ast.GeneratorExp | ast.SetComp,
    frame: Frame,
) -> Value:
    """Items one by one when they are known, else one item for all."""
    from nnx_migrate.sizes.statements.assignment import assign

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
                items.append(interpreter.evaluate(node.elt, frame))
            if not generator.ifs:
                return Sequence(tuple(items), is_list=True)
            return Repeated(items[0], None, node) if items else Sequence((), is_list=True)
        value, loop = iteration
        interpreter.loops.append(loop)
        try:
            assign(interpreter, generator.target, value, frame)
            item = interpreter.evaluate(node.elt, frame)
        finally:
            interpreter.loops.pop()
        return Repeated(item, None, node, dict(loop.last))
    finally:
        frame.env = saved
