"""Callables in fields: an activation keeps its input's shape, what is no activation does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nnx_migrate.abstract.values import Array, Library, Partial, Static, Value, as_array
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.sizes.module_fields import functions_in_fields

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def changes_size(
    interpreter: Interpreter, target: Value, array: Array, node: ast.Call, frame: Frame
) -> bool:
    """Whether a value of the field that is called gives ``array`` another last size.

    That is its default, or a function that a constructor call of the project gives it. Then the field
    holds no activation, and what it makes of the array nobody knows.
    """
    built = set(interpreter.built)
    for value in _values(interpreter, target):
        if isinstance(value, Function | Partial | Library):
            made = as_array(interpreter.call(value, (array,), {}, node, frame))
            if made is not None and made.axis(-1) != array.axis(-1):
                break
    else:
        return False
    for key in set(interpreter.built) - built:
        del interpreter.built[key]
    return True


def _values(interpreter: Interpreter, target: Value) -> Iterator[Value]:
    """What the class' own field that ``target`` is may hold: its default, functions it is given."""
    match target:
        case Static(expr=expr) if isinstance(expr.node, ast.Attribute):
            name = expr.node.attr
        case _:
            return
    if expr.text != f"self.{name}":
        return
    cls = interpreter.root.info
    for one in cls.fields:
        if one.name == name and one.default is not None:
            yield interpreter.evaluate(one.default, Frame(one.owner.scope, {}))
    for value, scope in functions_in_fields(interpreter.project).get((cls.name, name), ()):
        yield interpreter.evaluate(value, Frame(scope, {}))
