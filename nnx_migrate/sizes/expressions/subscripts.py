"""``base[index]`` of sequences, records, shapes and static values."""

from __future__ import annotations

import ast
import functools
import keyword
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import join, join_all
from nnx_migrate.abstract.lists import alike
from nnx_migrate.abstract.questions import constant_of, held_modules, is_none
from nnx_migrate.abstract.values import (
    NONE,
    Argument,
    Array,
    Choice,
    ConcatenatedList,
    ExtendedList,
    Instance,
    Library,
    Partial,
    Record,
    RepeatedDict,
    RepeatedItem,
    Sequence,
    Static,
    Submodule,
    Unknown,
    Value,
)
from nnx_migrate.sizes.attributes import OpenShape, ShapeOf, leading
from nnx_migrate.sizes.expressions.indexing import index_array, is_full
from nnx_migrate.sizes.expressions.list_parts import (
    leave_part,
    leave_part_elsewhere,
    note_index,
    slices,
)
from nnx_migrate.sizes.frames import Frame, Function, Loop
from nnx_migrate.sizes.instance_attributes import VARIABLES
from nnx_migrate.sizes.loop_names import header
from nnx_migrate.sizes.statics import axis_value, static_of
from nnx_migrate.source.walking import is_self

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def read_subscript(interpreter: Interpreter, node: ast.Subscript, frame: Frame) -> Value:
    """Value of ``base[index]``."""
    base = interpreter.evaluate(node.value, frame)
    index = node.slice
    if isinstance(base, Record | Choice) or not isinstance(index, ast.Slice | ast.Tuple):
        key: Value = interpreter.evaluate(index, frame) if not slices(index) else Unknown()
    else:
        key = Unknown()
    held = [*held_modules(base.item)] if isinstance(base, RepeatedItem) else []
    for module in held:  # the items may be lists of them
        if frame.own:
            leave_part(interpreter, module, node)
        elif module.owner is interpreter.root:
            leave_part_elsewhere(interpreter, module, index)
    if isinstance(base, RepeatedItem) and not slices(index):
        interpreter.apart.add(id(base.item))
    return item_of(interpreter, base, key, index, frame)


def key_text(key: ast.expr | None) -> str | None:
    """How Linen spells the key of a dict, a constant or a tuple of constants, in a name."""
    parts = key.elts if isinstance(key, ast.Tuple) else [key]
    if key is None or not all(isinstance(one, ast.Constant) for one in parts):
        return None
    return str(ast.literal_eval(key))


def item_of(
    interpreter: Interpreter, base: Value, key: Value, index: ast.expr, frame: Frame
) -> Value:
    """``base[index]``, where the index has the value `key`."""
    number = constant_of(key)
    match base:
        case ConcatenatedList():
            return item_of(interpreter, alike(base), key, index, frame)
        case Library() if base == VARIABLES:
            return base
        case Choice(options=options):
            containers = [one for one in options if is_none(one) is not True] or options
            return join_all(
                None, [item_of(interpreter, one, key, index, frame) for one in containers]
            )
        case Sequence():
            return _of_sequence(interpreter, base, key, index, frame)
        case ExtendedList():
            return _of_extended_list(interpreter, base, key, index, frame)
        case RepeatedItem() if isinstance(index, ast.Slice):
            length = _length_of_part(interpreter, base, index, frame)
            is_reordered = base.is_reordered or index.step is not None
            return replace(base, length=length, is_reordered=is_reordered)
        case RepeatedItem(is_numbered=False):
            return Unknown("an item of a list that only some rounds fill")
        case RepeatedItem():
            return _of_repeated_item(interpreter, base, key, index, frame)
        case RepeatedDict(each=every) if _meets_all(interpreter, every, key, index):
            if every.origin is not None:
                interpreter.loops[-1].meet(every.origin, every.length)
            return every.item
        case Record():
            return _of_record(interpreter, base, key, index, frame)
        case Argument():
            return _of_argument(interpreter, base, key, index, frame)
        case Array():
            return index_array(interpreter, base, index, frame)
        case ShapeOf(shape_of=array):
            return _shape_item(interpreter, array, number, index, frame)
        case OpenShape(tail=tail) if isinstance(number, int) and number < 0:
            size = tail[number] if -number <= len(tail) else None
            return axis_value(size)
        case Static(expr=expr):
            part = static_of(key) if not isinstance(index, ast.Slice) else None
            if isinstance(index, ast.Slice) or part is None:
                return _static_slice(interpreter, expr, index, frame)
            return Static(Expr(ast.Subscript(expr.node, part.node, ast.Load())))
        case _:
            return Unknown("item of an unknown value", is_item=True)


def _of_sequence(
    interpreter: Interpreter, base: Sequence, key: Value, index: ast.expr, frame: Frame
) -> Value:
    items, number = base.items, constant_of(key)
    if isinstance(number, int):
        return items[number] if -len(items) <= number < len(items) else Unknown("out of range")
    if isinstance(index, ast.Slice):
        return _slice(interpreter, base, index, frame)
    if not items:
        return Unknown("item of an unknown value", is_item=True)
    _leave_choice(interpreter, items, key, frame)
    return functools.reduce(functools.partial(join, None), items)


def _length_of_part(
    interpreter: Interpreter, base: RepeatedItem, index: ast.Slice, frame: Frame
) -> Expr | None:
    """How many of some arrays ``arrays[1:]`` has; of submodules, parts are told apart by their loops."""
    number = constant_of(Static(base.length)) if base.length is not None else None
    part = _constant_slice(interpreter, index, frame)
    if not isinstance(base.item, Array) or not isinstance(number, int) or part is None:
        return None
    return ex.literal(len(range(number)[part]))


def _of_extended_list(
    interpreter: Interpreter, base: ExtendedList, key: Value, index: ast.expr, frame: Frame
) -> Value:
    first, rest, number = base.first, base.rest, constant_of(key)
    if isinstance(number, int) and 0 <= number < len(first):
        return first[number]
    if isinstance(number, int) and number < 0 and _is_filter(rest):  # nothing may follow
        return join(None, first[-1], rest.item) if number == -1 else Unknown("from the end")
    if isinstance(index, ast.Slice):
        return _rest_of(first, rest, index)
    return item_of(interpreter, rest, key, index, frame)


def _of_repeated_item(
    interpreter: Interpreter, base: RepeatedItem, key: Value, index: ast.expr, frame: Frame
) -> Value:
    if interpreter.loops and base.origin is not None and not isinstance(base.item, Array):
        loop = interpreter.loops[-1]
        loop.meet(base.origin, base.length)
        _note_order(interpreter, loop, base, key)
    if frame.own:
        note_index(interpreter, base, key, index)
    return base.item


def _of_record(
    interpreter: Interpreter, base: Record, key: Value, index: ast.expr, frame: Frame
) -> Value:
    entries, number = base.entries, constant_of(key)
    text = str(number) if number is not None else key_text(index)
    if text in entries:
        return entries[text]
    is_tuple = all(one.isidentifier() and not keyword.iskeyword(one) for one in entries)
    if isinstance(number, int) and is_tuple:  # a dict with such keys has no entry 1
        present = [one for one in entries.values() if is_none(one) is not True]
        return present[number] if -len(present) <= number < len(present) else Unknown()
    if base.default is not None or not entries:
        return base.default or Unknown("unknown key")
    values = list(entries.values())
    _leave_choice(interpreter, values, key, frame)
    return values[0] if all(one == values[0] for one in values) else _any_of(values)


def _of_argument(
    interpreter: Interpreter, base: Argument, key: Value, index: ast.expr, frame: Frame
) -> Value:
    number = constant_of(key)
    if is_full(index):
        return base
    if isinstance(number, int):
        return Argument(f"{base.path}[{number}]")
    if isinstance(number, str):  # its entries are arrays of their own
        return Unknown(f"the entry {number!r} of {base.path}, whose size no argument shows")
    is_counted = isinstance(key, Static) and not key.expr.is_constant
    may_be_list = is_counted or isinstance(index, ast.Slice)
    if may_be_list and interpreter.as_array(base) is base:
        return Array((None,))  # the items of a list may differ: ``inputs[i]``, ``inputs[-2:]``
    return index_array(interpreter, base.array(), index, frame)


def _leave_choice(
    interpreter: Interpreter, items: Iterable[Value], key: Value, frame: Frame
) -> None:
    """Submodules of which one is taken by a key that is not a loop's: Linen makes only that one."""
    modules = [one for one in items if isinstance(one, Submodule | Instance)]
    names = key.expr.names if isinstance(key, Static) else frozenset()
    if len(modules) > 1 and frame.own and not names & interpreter.loop_names.loops.keys():
        for one in modules:
            interpreter.leave(one)


def _meets_all(interpreter: Interpreter, values: RepeatedItem, key: Value, index: ast.expr) -> bool:
    """Whether the loop around goes through the keys of a dict as the loop did that made it.

    ``self.heads = {k: nn.Dense(1) for k in self.tags}``, ``for k in self.tags: self.heads[k](x)``.
    """
    loop = interpreter.loops[-1] if interpreter.loops else None
    if loop is None or values.origin is None:
        return False
    match values.origin, header(values.origin), header(loop.node), index:
        case (
            ast.DictComp(key=ast.Name(id=made)),
            (ast.Name(id=target), ast.Attribute() as field),
            (ast.Name(id=counted), ast.Attribute() as items),
            ast.Name(id=name),
        ) if made == target and name == counted:
            is_counted = isinstance(key, Static) and key.expr.text == loop.variable(name)
            is_field = is_self(field.value) and field.attr in interpreter.root.fields
            return is_counted and is_field and ast.dump(field) == ast.dump(items)
    return False


def _note_order(interpreter: Interpreter, loop: Loop, base: RepeatedItem, key: Value) -> None:
    """Whether the rounds of a loop meet the items by an index in the order they were made in."""
    index = key.expr.node if isinstance(key, Static) else None
    counters = {name: zero for one in interpreter.loops for name, zero in one.counters.items()}
    if base.is_reordered or not (isinstance(index, ast.Name) and index.id in counters):
        loop.is_reordered = True
    elif counters[index.id] and base.origin is not None:
        for one in interpreter.loops:
            if index.id in one.counters:
                interpreter.loop_names.join(one.node, base.origin)


def _shape_item(
    interpreter: Interpreter, array: Array, number: object, index: ast.expr, frame: Frame
) -> Value:
    """``x.shape[i]`` and ``x.shape[a:b]`` of an array of unknown rank."""
    if isinstance(number, int):
        interpreter.prove(array, least=number + 1 if number >= 0 else -number)
        size = array.axis(number)
        return axis_value(size)
    if not isinstance(index, ast.Slice) or index.step is not None:
        return Unknown("an axis nobody knows")
    low, high = _bound(interpreter, index.lower, frame), _bound(interpreter, index.upper, frame)
    if low == "?" or high == "?":
        return Unknown("an axis nobody knows")
    if isinstance(high, int) and high >= 0 and (low is None or isinstance(low, int)):
        interpreter.prove(array, least=high)
        sizes = [array.axis(axis) for axis in range(int(low or 0), high)]
        return Sequence(tuple(map(axis_value, sizes)))
    if isinstance(low, int) and low < 0:
        interpreter.prove(array, least=-low)
        sizes = [array.axis(axis) for axis in range(low, high if isinstance(high, int) else 0)]
        return Sequence(tuple(map(axis_value, sizes)))
    if low in (None, 0) and isinstance(high, int):
        return leading(array, high)
    return OpenShape(array.last_sizes(1), array, 0) if high is None else OpenShape((), Array(), 0)


def _bound(interpreter: Interpreter, node: ast.expr | None, frame: Frame) -> int | str | None:
    if node is None:
        return None
    constant = constant_of(interpreter.evaluate(node, frame))
    return constant if isinstance(constant, int) else "?"


def _any_of(values: list[Value]) -> Value:
    functions = all(isinstance(one, Library | Function | Partial) for one in values)
    return Choice(tuple(values)) if functions or len(values) <= 8 else Unknown("one of many")


def _static_slice(interpreter: Interpreter, expr: Expr, index: ast.expr, frame: Frame) -> Value:
    if not isinstance(index, ast.Slice):
        return Unknown("index unknown")
    parts = []
    for bound in (index.lower, index.upper, index.step):
        value = interpreter.evaluate(bound, frame) if bound else None
        if value is not None and not isinstance(value, Static):
            return Unknown("slice unknown")
        parts.append(value.expr.node if isinstance(value, Static) else None)
    return Static(Expr(ast.Subscript(expr.node, ast.Slice(*parts), ast.Load())))


def _slice(interpreter: Interpreter, base: Sequence, index: ast.Slice, frame: Frame) -> Value:
    part = _constant_slice(interpreter, index, frame)
    if part is None:
        return Unknown("slice of unknown bounds")
    return Sequence(base.items[part], base.is_list)


def _constant_slice(interpreter: Interpreter, index: ast.Slice, frame: Frame) -> slice | None:
    bounds: list[int | None] = []
    for bound in (index.lower, index.upper, index.step):
        value = interpreter.evaluate(bound, frame) if bound else NONE
        number = constant_of(value, unknown="?")
        if not (number is None or isinstance(number, int)):
            return None
        bounds.append(number)
    return slice(*bounds)


def _is_filter(rest: RepeatedItem) -> bool:
    """Whether the items were picked from known ones, so that there may be none."""
    return isinstance(rest.origin, ast.ListComp | ast.GeneratorExp | ast.SetComp)


def _rest_of(first: tuple[Value, ...], rest: RepeatedItem, index: ast.Slice) -> Value:
    """``items[n:]`` of a few known items and what follows."""
    match index:
        case ast.Slice(lower=ast.Constant(value=int(start)), upper=None, step=None):
            return ExtendedList(first[start:], rest) if start < len(first) else rest
        case ast.Slice(lower=None, upper=None, step=None):
            return ExtendedList(first, rest)
    return Unknown("a part of a list that is known in part")
