"""Operators on abstract values."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import as_array, join_all
from nnx_migrate.abstract.lists import joined_lists
from nnx_migrate.abstract.questions import is_scalar
from nnx_migrate.abstract.shapes import Dim
from nnx_migrate.abstract.values import (
    Array,
    Choice,
    ConcatenatedList,
    ExtendedList,
    RepeatedItem,
    Sequence,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.sizes.attributes import OpenShape, ShapeOf
from nnx_migrate.sizes.expressions.conditions import is_told, truth, truth_of
from nnx_migrate.sizes.expressions.doubtful import Before, doubtful
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.statics import static_of
from nnx_migrate.source.walking import walk

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def read_binary(interpreter: Interpreter, node: ast.BinOp, frame: Frame) -> Value:
    """Value of ``left op right``."""
    left, right = interpreter.evaluate(node.left, frame), interpreter.evaluate(node.right, frame)
    left, right = interpreter.as_array(left), interpreter.as_array(right)
    if as_array(left) is not None or as_array(right) is not None:
        left, right = interpreter.single(left), interpreter.single(right)
    found = combine(left, node.op, right, interpreter.ones)
    interpreter.meet(as_array(left), as_array(right))
    interpreter.ranks.want(found, (left, right))
    return found


def combine(left: Value, op: ast.operator, right: Value, ones: Container[str] = ()) -> Value:
    """``left op right`` on abstract values."""
    for one in (left, right):
        if isinstance(one, Choice) and any(isinstance(o, Sequence) for o in one.options):
            results = [
                combine(o, op, right, ones) if one is left else combine(left, op, o, ones)
                for o in one.options
            ]
            return join_all(one.test, results)
    if isinstance(left, Static) and isinstance(right, Static):
        return Static(ex.binary(left.expr, op, right.expr))
    if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(op, ast.Add):
        return Sequence((*left.items, *right.items), left.is_list)
    if isinstance(left, Sequence) and left.items and isinstance(op, ast.Add):
        match right:
            case RepeatedItem():
                return ExtendedList(left.items, right)
            case ExtendedList(first=known, rest=rest):
                return ExtendedList((*left.items, *known), rest)
    if isinstance(op, ast.Add) and isinstance(left, RepeatedItem | ExtendedList | ConcatenatedList):
        return joined_lists(left, right)
    if isinstance(left, ShapeOf) and isinstance(right, Sequence):
        left = OpenShape(left.shape_of.last_sizes(1), left.shape_of, 0)
    if isinstance(left, OpenShape) and isinstance(right, Sequence):
        added = tuple(item.expr if isinstance(item, Static) else None for item in right.items)
        return OpenShape((*left.tail, *added), left.source, left.cut, added)
    if isinstance(op, ast.Add) and _are_static_and_sequence(left, right):
        first_part, second_part = static_of(left), static_of(right)
        if first_part is not None and second_part is not None:  # self.kernel_size + (features,)
            return Static(ex.binary(first_part, op, second_part))
    if isinstance(op, ast.Mult) and (again := _again(left, right) or _again(right, left)):
        return again
    first, second = as_array(left), as_array(right)
    if isinstance(op, ast.MatMult):
        return shapes.contract_last(first, second, ones) if first and second else Unknown("@")
    if first is not None:
        if second is not None:
            return shapes.broadcast([first, second], ones)
        return first if is_scalar(right) else shapes.beside_unknown(first)
    if second is not None:
        return second if is_scalar(left) else shapes.beside_unknown(second)
    return Unknown("an operator on unknown values")


def open_shape(parts: Iterable[Value]) -> OpenShape | None:
    """``(*lead, 2, 3)`` of parts one after the other; None where one is no shape or list of sizes."""
    first, *others = parts
    if all(isinstance(one, Sequence) for one in others):
        added = tuple(item for one in others if isinstance(one, Sequence) for item in one.items)
        whole = combine(first, ast.Add(), Sequence(added))
        return whole if isinstance(whole, OpenShape) else None
    sizes: list[Dim] = []
    for part in (first, *others):
        if isinstance(part, Sequence):
            sizes += [one.expr if isinstance(one, Static) else None for one in part.items]
        elif isinstance(part, ShapeOf | OpenShape):  # what stands before it may be anywhere
            sizes = []
        else:
            return None
    return OpenShape(tuple(sizes), Array(), 0, tuple(sizes))


def _are_static_and_sequence(left: Value, right: Value) -> bool:
    kinds = (Static, Sequence)
    return isinstance(left, kinds) and isinstance(right, kinds) and type(left) is not type(right)


def _again(value: Value, count: Value) -> Value | None:
    """``[x] * 3``; None where it is no list of several times the same: ``(0.1, 0.2) * noise``."""
    if not isinstance(value, Sequence) or isinstance(count, Array):
        return None
    number = count.expr if isinstance(count, Static) else None
    if number and number.is_constant and isinstance(number.constant, int) and number.constant <= 64:
        return Sequence(value.items * number.constant, value.is_list)
    return (
        RepeatedItem(value.items[0], number) if len(value.items) == 1 else Unknown("a list again")
    )


def read_unary(interpreter: Interpreter, node: ast.UnaryOp, frame: Frame) -> Value:
    """Value of ``op operand``."""
    if isinstance(node.op, ast.Not):
        test = truth(interpreter, node.operand, frame)
        if isinstance(test, bool):
            return Static(ex.literal(not test))
        return Static(Expr(ast.UnaryOp(ast.Not(), test.node))) if test else Unknown("not unknown")
    value = interpreter.evaluate(node.operand, frame)
    if isinstance(value, Static):
        return Static(Expr(ast.UnaryOp(node.op, value.expr.node)))
    if is_scalar(value):  # -jnp.inf
        return value
    return as_array(value) or Unknown("unary operator")


def read_test(interpreter: Interpreter, node: ast.expr, frame: Frame) -> Value:
    """Value of a comparison, ``and`` or ``or``."""
    with interpreter.ranks.uncertain(), doubtful(interpreter, frame, node) as before:
        return _read_test(interpreter, node, frame, before)


def _read_test(interpreter: Interpreter, node: ast.expr, frame: Frame, before: Before) -> Value:
    if isinstance(node, ast.BoolOp):
        chosen = _choose(interpreter, node, frame)
        if chosen is not None:
            return chosen
        before.restore()
    if isinstance(node, ast.Compare):
        values = [interpreter.evaluate(n, frame) for n in (node.left, *node.comparators)]
        known = [array for array in map(as_array, values) if array]
        if known and not _is_none_test(node) and not _is_shape_test(node):
            found = shapes.broadcast(known, interpreter.ones)
            others = (one for one in values if as_array(one) is None)
            return found if all(map(is_scalar, others)) else shapes.beside_unknown(found)
        before.restore()
    test = truth(interpreter, node, frame)
    before.restore()
    if isinstance(node, ast.BoolOp) and not _is_its_truth(interpreter, node, frame):
        return Unknown("one of several values")
    if isinstance(test, bool):
        return Static(ex.literal(test))
    if test is None or (isinstance(node, ast.BoolOp) and is_told(test)):  # a or b is no truth value
        return Unknown("a condition on call arguments")
    return Static(test)


def _is_its_truth(interpreter: Interpreter, node: ast.expr, frame: Frame) -> bool:
    """Whether a test is a truth value, or has a text: ``self.depth and [5, 2]`` is neither."""
    match node:
        case ast.BoolOp(values=values):
            return all(_is_its_truth(interpreter, one, frame) for one in values)
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id="isinstance" | "hasattr")):
            return True
        case ast.Call(func=ast.Attribute()):  # to evaluate it again would be a call of a submodule
            return False
        case ast.Call(func=ast.Name(id=name)) if name in frame.env:
            return False
    return isinstance(interpreter.evaluate(node, frame), Static)


def _is_none_test(node: ast.Compare) -> bool:
    return isinstance(node.ops[0], ast.Is | ast.IsNot)


def _is_shape_test(node: ast.Compare) -> bool:
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("shape", "ndim", "dtype") for n in walk(node)
    )


def _choose(interpreter: Interpreter, node: ast.BoolOp, frame: Frame) -> Value | None:
    """``self.width or x.shape[-1]``, ``widths[1:] or widths``: the one that it is; None if nobody knows."""
    is_or = isinstance(node.op, ast.Or)
    first = interpreter.evaluate(node.values[0], frame)
    rest = node.values[1:]
    while rest and (known := truth_of(first)) is not None:
        if known is is_or:
            return first
        first, rest = interpreter.evaluate(rest[0], frame), rest[1:]
    if not rest:
        return first
    return _either(interpreter, first, rest, frame) if is_or else None


def _either(
    interpreter: Interpreter, first: Value, rest: list[ast.expr], frame: Frame
) -> Value | None:
    """A text that says it at run time."""
    if not isinstance(first, Static):
        return None
    with interpreter.under(ex.negation(first.expr)):
        values = [first, *(interpreter.evaluate(one, frame) for one in rest)]
    statics = [value.expr for value in values if isinstance(value, Static)]
    if len(statics) != len(values):
        return None
    return Static(Expr(ast.BoolOp(ast.Or(), [one.node for one in statics])))
