"""Callables in fields: an activation keeps its input's shape, what is no activation does not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import Array, Library, Partial, Static, Value, as_array
from nnx_migrate.sizes.frames import Frame, Function

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def changes_size(
    interpreter: Interpreter, target: Value, array: Array, node: ast.Call, frame: Frame
) -> bool:
    """Whether the default of the field that is called gives ``array`` another last size.

    Then the field holds no activation, and what another value makes of the array nobody knows.
    """
    default = _default(interpreter, target)
    if not isinstance(default, Function | Partial | Library):
        return False
    built = set(interpreter.built)
    made = as_array(interpreter.call(default, (array,), {}, node, frame))
    for key in set(interpreter.built) - built:
        del interpreter.built[key]
    return made is not None and made.axis(-1) != array.axis(-1)


def _default(interpreter: Interpreter, target: Value) -> Value | None:
    """The default of the class' own field that ``target`` is."""
    match target:
        case Static(expr=expr) if isinstance(expr.node, ast.Attribute):
            name = expr.node.attr
        case _:
            return None
    if expr.text != f"self.{name}":
        return None
    for one in interpreter.root.info.fields:
        if one.name == name and one.default is not None:
            return interpreter.evaluate(one.default, Frame(one.owner.scope, {}))
    return None
