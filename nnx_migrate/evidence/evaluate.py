"""Compute the text of a size from recorded fields and inputs, without running anything else."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nnx_migrate.evidence.values import (
    HAS_ITEMS,
    EncodedValue,
    NotThere,
    arrays,
    kind_of,
    part,
)

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_CALLS: Mapping[str, Callable[..., Any]] = {
    "int": int,
    "min": min,
    "max": max,
    "len": len,
    "round": round,
    "abs": abs,
    "sum": sum,
}
_LIMIT = 1 << 40  # no size is larger; keeps a power of unknown text from running away


@dataclass(frozen=True)
class Surroundings:
    """What an expression may read: ``self.<field>``, arrays of the call, and plain names."""

    fields: EncodedValue  # a value of kind "module"
    inputs: Mapping[str, EncodedValue]
    names: Mapping[str, Any]


class Unknown(Exception):
    """The expression reads something that was not recorded."""


def evaluate(text: str, around: Surroundings) -> Any:
    """The value of an expression.

    Raises:
        Unknown: it reads what was not recorded, or uses a construct that is not computed here.
    """
    try:
        return _value(_parse(text), around)
    except (NotThere, ArithmeticError, TypeError, ValueError, IndexError) as error:
        raise Unknown(f"{text}: {error}") from error


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _value(node: ast.expr, around: Surroundings) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_value(item, around) for item in items)
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _value(left, around), _value(right, around))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, around)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, around)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, around) else orelse, around)
        case ast.BoolOp(op=op, values=values):
            return _boolean(op, values, around)
        case ast.Compare(left=ast.List()) | ast.Compare(comparators=[ast.List()]):
            raise Unknown("whether a tuple or a list is compared")
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return _COMPARE[type(op)](_value(left, around), _value(right, around))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS:
            return _CALLS[name](*(_value(one, around) for one in args))
        case ast.Name(id=name) if name in around.names:
            return around.names[name]
        case ast.Attribute(value=array, attr="shape"):
            return _shape(ast.unparse(array), around)
        case ast.Attribute() | ast.Subscript():
            return _read(node, around)
        case _:
            raise Unknown(f"{ast.unparse(node)} is not computed")


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    if type(op) not in _BINARY or (isinstance(op, ast.Pow) and abs(right) > 8):
        raise Unknown("an operator that is not computed")
    value = _BINARY[type(op)](left, right)
    if isinstance(value, int) and abs(value) > _LIMIT:
        raise Unknown("a number that is no size")
    return value


def _boolean(op: ast.boolop, values: list[ast.expr], around: Surroundings) -> Any:
    stop = isinstance(op, ast.Or)
    value: Any = not stop
    for one in values:
        value = _value(one, around)
        if bool(value) is stop:
            return value
    return value


def _read(node: ast.Attribute | ast.Subscript, around: Surroundings) -> Any:
    """A field, or a part of one, or an item of a computed tuple."""
    if isinstance(node, ast.Subscript):
        base = node.value
        if isinstance(node.slice, ast.Slice):
            return _slice(_value(base, around), node.slice, around)
        if not _below_self(base):
            return _value(base, around)[_value(node.slice, around)]
    return _plain(_evaluate(node, around))


def _slice(items: Any, bounds: ast.Slice, around: Surroundings) -> Any:
    if not isinstance(items, tuple):
        raise Unknown("a part of what is no tuple")
    parts = (bounds.lower, bounds.upper, bounds.step)
    slice_bounds: list[Any] = [one and _value(one, around) for one in parts]
    return items[slice(*slice_bounds)]


def _below_self(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            return False
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self"


def _evaluate(node: ast.expr, around: Surroundings) -> EncodedValue:
    match node:
        case ast.Name(id="self"):
            return around.fields
        case ast.Attribute(value=inner, attr=name):
            return part(_evaluate(inner, around), name)
        case ast.Subscript(value=inner, slice=index):
            key = ast.Constant(_value(index, around))
            if isinstance(key.value, int) and key.value < 0:
                key = ast.Constant(key.value + len(_evaluate(inner, around).get("items", ())))
            return part(_evaluate(inner, around), key)
        case _:
            raise Unknown(f"{ast.unparse(node)} was not recorded")


def _plain(value: EncodedValue) -> Any:
    kind = kind_of(value)
    if kind == "plain":
        return value
    if kind == "text":
        return value["value"]
    if kind in HAS_ITEMS:
        return tuple(_plain(item) for item in value["items"])
    raise Unknown(f"a value of kind {kind}")


def _shape(path: str, around: Surroundings) -> tuple[int, ...]:
    for name, value in around.inputs.items():
        for place, shape in arrays(value, name):
            if place == path:
                return shape
    raise Unknown(f"{path} was no array")
