"""Binding values to targets."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.lists import alike
from nnx_migrate.abstract.questions import constant_of, held_modules
from nnx_migrate.abstract.values import (
    Argument,
    Array,
    Choice,
    ConcatenatedList,
    ExtendedList,
    Record,
    RepeatedItem,
    Sequence,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.sizes.attributes import OpenShape, leading
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.lists import lose
from nnx_migrate.sizes.statics import axis_value

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
        case ast.Starred(value=inner):
            assign(interpreter, inner, value, frame)
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in frame.env:
            _set_attribute(name, attr, value, frame)
        case ast.Subscript(value=ast.Name(id=name), slice=index) if name in frame.env:
            _set_item(name, interpreter.evaluate(index, frame), value, frame)
        case ast.Attribute(
            value=ast.Attribute(value=ast.Name(id="self"), attr=attribute), attr="value"
        ):
            _set_variable(attribute, value, frame)
        case ast.Attribute() | ast.Subscript():
            lose(target, frame)


def _set_attribute(name: str, attribute: str, value: Value, frame: Frame) -> None:
    """``name.attribute = value``."""
    object_ = frame.env[name]
    if isinstance(object_, Record):
        frame.change(name, replace(object_, entries={**object_.entries, attribute: value}))
    elif isinstance(object_, Static | Choice):
        frame.change(name, Unknown(f"{name}.{attribute} is changed"))


def _set_item(name: str, key: Value, value: Value, frame: Frame) -> None:
    """``name[key] = value``; an array keeps its shape."""
    container = frame.env[name]
    constant = constant_of(key)
    match container:
        case Record() if isinstance(key, Static):
            entries = {**container.entries, str(key.expr.text).strip("'\""): value}
            frame.change(name, replace(container, entries=entries))
        case Sequence(items=items) if isinstance(constant, int) and -len(items) <= constant < len(
            items
        ):
            changed = list(items)
            changed[constant] = value
            frame.change(name, Sequence(tuple(changed), is_list=True))
        case (
            Record() | Sequence() | RepeatedItem() | ExtendedList() | ConcatenatedList() | Choice()
        ):
            frame.change(name, Unknown("an item that nobody knows is changed"))
        case Argument() if not isinstance(constant, str):
            pass
        case Static() | Argument():
            frame.change(name, Unknown("an entry is changed"))


def _set_variable(attribute: str, value: Value, frame: Frame) -> None:
    """``self.attribute.value = value``, of what ``self.variable`` made in ``setup``."""
    variable = frame.instance.attributes.get(attribute) if frame.instance is not None else None
    if frame.instance is not None and isinstance(variable, Record):
        entries = {**variable.entries, "value": value}
        frame.instance.attributes[attribute] = replace(variable, entries=entries)


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
    if isinstance(value, Array) and not starred:
        return [_item(interpreter, value)] * count
    if isinstance(value, ConcatenatedList):
        value = alike(value)
    if isinstance(value, RepeatedItem):
        if starred:  # not all of them may be called
            interpreter.leave(value)
        interpreter.apart |= {id(one) for one in held_modules(value)}
        rest = replace(value, length=None)
        return [rest if isinstance(one, ast.Starred) else value.item for one in targets]
    if isinstance(value, Static) and len(starred) == 1:
        return [Static(one) for one in _around(value.expr, starred[0], count)]
    if isinstance(value, Static) and not starred:
        subscripts = [ast.Subscript(value.expr.node, ast.Constant(i)) for i in range(count)]
        return [Static(Expr(one)) for one in subscripts]
    if isinstance(value, Record) and not starred and len(value.entries) == count:
        return list(value.entries.values())
    shape = getattr(value, "shape_of", None)
    if isinstance(shape, Array) and not starred:
        interpreter.prove(shape, exact=count)
        return [axis_value(shape.axis(i - count)) for i in range(count)]
    if isinstance(shape, Array) and len(starred) == 1:
        interpreter.prove(shape, least=count - 1)
        head, tail = starred[0], count - starred[0] - 1
        is_front = tail > 0 and head == 0
        between = leading(shape, -tail) if is_front else OpenShape((), Array(), 0)
        ends = [axis_value(shape.axis(i)) for i in (*range(head), *range(-tail, 0))]
        return [*ends[:head], between, *ends[head:]]
    return [Unknown("unpacked from an unknown value")] * count


def _item(interpreter: Interpreter, array: Array) -> Value:
    """One of the arrays that an array is taken apart into."""
    array = interpreter.ranks.with_rank(array)
    if array.rank is None:
        return interpreter.ranks.behind(array, 0, -1)
    sizes = array.last_sizes(array.rank)
    return Array(sizes[1:], array.rank - 1) if sizes else Unknown("a number is taken apart")


def _around(whole: Expr, head: int, count: int) -> list[Expr]:
    """``*hidden, last``: the items before and behind the starred target, and the slice between."""
    tail = count - head - 1
    ends = [ast.Constant(head) if head else None, ast.Constant(-tail) if tail else None]
    keys: list[ast.expr] = [ast.Constant(i) for i in range(head)]
    keys += [ast.Slice(*ends), *(ast.Constant(i - tail) for i in range(tail))]
    return [Expr(ast.Subscript(whole.node, key, ast.Load())) for key in keys]
