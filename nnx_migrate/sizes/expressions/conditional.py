"""Conditional expressions: ``body if test else orelse``, also where it is what a call calls."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from nnx_migrate.abstract.joining import join, join_by_presence
from nnx_migrate.abstract.values import Value
from nnx_migrate.sizes.expressions.conditions import truth
from nnx_migrate.sizes.expressions.doubtful import doubtful
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.narrowing import narrow
from nnx_migrate.sizes.presence import sides

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def conditional(
    interpreter: Interpreter, node: ast.IfExp, frame: Frame, read: Callable[[ast.expr], Value]
) -> Value:
    """Value of ``body if test else orelse``, where ``read`` says what becomes of either."""
    test = truth(interpreter, node.test, frame)
    if isinstance(test, bool):
        return read(node.body if test else node.orelse)
    met, unmet = sides(test, node.test, frame)
    narrow_by = functools.partial(narrow, interpreter.project, frame, node.test)
    with doubtful(interpreter, frame, node.body, node.orelse) as before:
        with interpreter.on(met), narrow_by(holds=True):
            yes = read(node.body)
        before.restore()
        with interpreter.on(unmet), narrow_by(holds=False):
            no = read(node.orelse)
    return (
        join(test, yes, no)
        if test is not None
        else join_by_presence(met.presence, unmet.presence, yes, no)
    )
