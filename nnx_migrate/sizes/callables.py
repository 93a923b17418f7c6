"""Callables in fields: an activation keeps its input's shape, what is no activation does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.values import Argument, Array, Library, Partial, Static, Unknown, Value
from nnx_migrate.sizes.fields.values import given_to_parameter, possible_values
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.source.names import last_name

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def changes_size(
    interpreter: Interpreter, callee: Value, array: Array, node: ast.Call, frame: Frame
) -> bool:
    """Whether what is called may give ``array`` other sizes: a field, an entry of a table.

    Of a field that is its default, or what the project gives it. Then it is no activation, and what it
    makes of the array nobody knows.
    """
    built = set(interpreter.submodules)
    values = _values(interpreter, node.func, frame)
    if isinstance(callee, Static) and ast.unparse(node.func) != callee.expr.text:
        values = chain(values, _own_values(interpreter, callee))
    for value in values:
        if isinstance(value, Unknown):
            break  # an object: what its class makes of arrays is not read
        if isinstance(value, Function | Partial | Library):
            made = as_array(interpreter.call(value, (array,), {}, node, frame))
            if _is_other(made, array) if made is not None else not isinstance(value, Library):
                break
    else:
        return False
    for key in set(interpreter.submodules) - built:
        del interpreter.submodules[key]
    return True


def is_of_helper(interpreter: Interpreter, callee: Value) -> bool:
    """Whether what is called is a parameter of a helper, and what every call gives it is found.

    Of a method's own argument nobody knows what it is; a helper's calls all stand in the project.
    """
    function, project = interpreter.root.info.function, interpreter.project
    if not isinstance(callee, Argument) or not isinstance(function, ast.FunctionDef):
        return False
    values = given_to_parameter(project, interpreter.root.info.module, function, callee.path)
    found = [next(possible_values(project, *one), None) for one in values]
    return bool(found) and None not in found


def _is_other(result: Array, array: Array) -> bool:
    """Whether one of the last axes that are known of an array has another size in what is made of it."""
    known = range(-1, -1 - max(1, len(array.tail)), -1)
    return result.rank != array.rank or any(result.axis(one) != array.axis(one) for one in known)


def _own_values(interpreter: Interpreter, callee: Static) -> Iterator[Value]:
    """Those of a field that the class hands to a submodule's call, where it has another name."""
    info = interpreter.root.info
    frame = Frame(info.scope, {}, interpreter.root)
    return _values(interpreter, callee.expr.node, frame)


def _values(interpreter: Interpreter, node: ast.expr, frame: Frame) -> Iterator[Value]:
    """The functions that what is called may be."""
    owner = frame.instance
    around = owner.info.node if owner is not None else None
    for value, scope in possible_values(interpreter.project, node, frame.scope, around):
        if isinstance(value, ast.FunctionDef):
            yield Function(value, scope)
        elif isinstance(value, ast.Call) and last_name(value.func) != "partial":
            yield Unknown("an object")
        elif not isinstance(value, ast.Constant | ast.UnaryOp | ast.BinOp):
            yield interpreter.evaluate(value, Frame(scope, {}))
