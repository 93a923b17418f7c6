"""Binding values to targets."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.values import (
    Argument,
    Array,
    Record,
    Repeated,
    Sequence,
    Static,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def assign(interpreter: Interpreter, target: ast.expr, value: Value, frame: Frame) -> None:
    """Bind a value to a target."""
    match target:
        case ast.Name(id=name):
            frame.env[name] = value
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if frame.instance is not None:
            frame.instance.attributes[name] = value
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for one, item in zip(targets, _unpack(interpreter, value, targets), strict=True):
                inner = one.value if isinstance(one, ast.Starred) else one
                assign(interpreter, inner, item, frame)
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            held, key = frame.env.get(name), interpreter.evaluate(index, frame)
            if isinstance(held, Record) and isinstance(key, Static):
                entries = {**held.entries, str(key.expr.text).strip("'\""): value}
                frame.env[name] = Record(entries, held.default)


def _unpack(interpreter: Interpreter, value: Value, targets: list[ast.expr]) -> list[Value]:
    count = len(targets)
    starred = [i for i, one in enumerate(targets) if isinstance(one, ast.Starred)]
    if isinstance(value, Sequence) and not starred and len(value.items) == count:
        return list(value.items)
    if isinstance(value, Sequence) and len(starred) == 1 and len(value.items) >= count - 1:
        head, tail = starred[0], count - starred[0] - 1
        cut = len(value.items) - tail
        middle = Sequence(value.items[head:cut], is_list=True)
        return [*value.items[:head], middle, *value.items[cut:]]
    if isinstance(value, Argument) and not starred:
        return [Argument(f"{value.path}[{i}]") for i in range(count)]
    if isinstance(value, Repeated):
        return [value.item] * count
    if isinstance(value, Static) and not starred:
        subscripts = [ast.Subscript(value.expr.node, ast.Constant(i)) for i in range(count)]
        return [Static(Expr(one)) for one in subscripts]
    if isinstance(value, Record) and not starred and len(value.entries) == count:
        return list(value.entries.values())
    shape = getattr(value, "shape_of", None)
    if isinstance(shape, Array) and not starred:
        interpreter.prove(shape, exact=count)
        return [_size(shape.axis(i - count)) for i in range(count)]
    return [Unknown("unpacked from an unknown value")] * count


def _size(size: Expr | None) -> Value:
    return Static(size) if size else Unknown("size unknown")
