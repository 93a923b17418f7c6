"""Decorated functions of the project: each decorator is called with what is below it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import Unknown, Value
from nnx_migrate.sizes.frames import Frame, Function

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def decorate(
    interpreter: Interpreter, function: Function, decorators: Sequence[ast.expr], frame: Frame
) -> Value:
    """What the name of a decorated function holds; Unknown when a decorator is not understood."""
    value: Value = function
    for one in reversed(decorators):
        wrapper = interpreter.evaluate(one, frame)
        value = interpreter.call(wrapper, (value,), {}, application(one), frame)
        if isinstance(value, Unknown):
            return Unknown(f"what the decorator {ast.unparse(one)} returns is not known")
    return value


@lru_cache(maxsize=1 << 12)
def application(decorator: ast.expr) -> ast.Call:
    """The call that a decorator stands for; one node for each, as nodes are known by identity."""
    return ast.copy_location(ast.Call(decorator, [], []), decorator)
