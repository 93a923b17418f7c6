"""Bounds of sizes, and the lengths of slices.

An axis of an array has one element at least: ``x[..., :1]`` is 1.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr

Bound = int | None  # None where there is none


def bounds(size: Expr) -> tuple[Bound, Bound]:
    """Between which numbers a size lies, both included."""
    if size.is_constant:
        number = size.constant
        return (number, number) if isinstance(number, int) else (None, None)
    match size.node:
        case ast.Name(id=name):
            return (1 if ex.is_input(name) else 0, None)
        case ast.Attribute() | ast.Subscript():
            return 0, None
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=args, keywords=[]):
            return _extreme(name, [bounds(Expr(one)) for one in args])
        case ast.BinOp(
            left=ast.Call(func=ast.Name(id="min"), args=[whole, ast.Constant(value=int(far))]),
            op=ast.Sub(),
            right=ast.Call(func=ast.Name(id="min"), args=[other, ast.Constant(value=int(near))]),
        ) if far >= near and Expr(whole) == Expr(other):  # a slice between two numbers
            return 0, far - near
        case ast.IfExp(body=yes, orelse=no):
            return _either(bounds(Expr(yes)), bounds(Expr(no)))
        case ast.BinOp(left=left, op=op, right=right):
            return _combine(bounds(Expr(left)), op, bounds(Expr(right)))
    return None, None


def _extreme(name: str, all_bounds: list[tuple[Bound, Bound]]) -> tuple[Bound, Bound]:
    lows, highs = (list(side) for side in zip(*all_bounds, strict=True))
    known_lows = [one for one in lows if one is not None]
    known_highs = [one for one in highs if one is not None]
    if name == "min":  # any upper bound of one is one of the least
        low = min(known_lows) if len(known_lows) == len(lows) else None
        return low, min(known_highs, default=None)
    high = max(known_highs) if len(known_highs) == len(highs) else None
    return max(known_lows, default=None), high


def _either(one: tuple[Bound, Bound], other: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    low = None if one[0] is None or other[0] is None else min(one[0], other[0])
    high = None if one[1] is None or other[1] is None else max(one[1], other[1])
    return low, high


def _combine(
    one: tuple[Bound, Bound], op: ast.operator, other: tuple[Bound, Bound]
) -> tuple[Bound, Bound]:
    if isinstance(op, ast.Sub):
        return _of(operator.sub, one[0], other[1]), _of(operator.sub, one[1], other[0])
    if isinstance(op, ast.Add):
        return _of(operator.add, one[0], other[0]), _of(operator.add, one[1], other[1])
    positive = all(low is not None and low >= 0 for low in (one[0], other[0]))
    if isinstance(op, ast.Mult) and positive:
        return _of(operator.mul, one[0], other[0]), _of(operator.mul, one[1], other[1])
    if isinstance(op, ast.FloorDiv) and positive and other[0] == other[1] != 0:
        return _of(operator.floordiv, one[0], other[0]), _of(operator.floordiv, one[1], other[0])
    return None, None


def _of(sign: Callable[[int, int], int], one: Bound, other: Bound) -> Bound:
    return None if one is None or other is None else sign(one, other)


def is_one(size: Expr | None) -> bool:
    """Whether a size is 1, as the only one that it can have."""
    return size is not None and bounds(size)[1] == 1


def exceeds_one(size: Expr | None) -> bool:
    """Whether a size is surely more than 1."""
    low = bounds(size)[0] if size is not None else None
    return low is not None and low > 1


def slice_length(size: Expr | None, low: Expr | None, high: Expr | None) -> Expr | None:
    """Length of ``axis[low:high]`` of an axis of this size; bounds that are None are left out."""
    if size is None:
        return None
    start, end = _number(low, 0), _number(high, None)
    if low is not None and high is None and _is_negative(low):
        return at_most(size, _negate(low))
    if start == "?" or end == "?":
        return ex.binary(_position(size, high, size), ast.Sub(), _position(size, low, _ZERO))
    if isinstance(start, int) and isinstance(end, int) and (start < 0) == (end < 0):
        if end <= start:
            return _ZERO
        far, near = (end, start) if start >= 0 else (-start, -end)
        return ex.binary(at_most(size, ex.literal(far)), ast.Sub(), at_most(size, ex.literal(near)))
    length = ex.binary(_position(size, high, size), ast.Sub(), _position(size, low, _ZERO))
    return _not_negative(length)


_ZERO = ex.literal(0)


def _number(bound: Expr | None, default: int | None) -> int | str | None:
    """A bound where it is a known number, "?" where it is another expression."""
    if bound is None:
        return default
    number = bound.constant if bound.is_constant else "?"
    return number if isinstance(number, int) else "?"


def _position(size: Expr, bound: Expr | None, default: Expr) -> Expr:
    """A bound of a slice as a position from the start; one that is no literal counts from there."""
    if bound is None:
        return default
    if _is_negative(bound):
        left = ex.binary(size, ast.Sub(), _negate(bound))
        return _not_negative(left) if bound.is_constant else left
    return at_most(size, bound)


def _not_negative(size: Expr) -> Expr:
    """``max(size, 0)``; of an axis without its last element the number that is left."""
    low = bounds(size)[0]
    if low is not None and low >= 0:
        return size
    if size.is_constant:
        return _ZERO
    match size.node:
        case ast.BinOp(op=ast.Sub(), right=ast.Constant(value=1)):
            return size
        case ast.BinOp(
            left=whole, op=ast.Sub(), right=ast.Call(func=ast.Name(id="min"), args=args)
        ):
            if any(Expr(one) == Expr(whole) for one in args):
                return size
    return ex.greatest(size, _ZERO)


def at_most(size: Expr, bound: Expr) -> Expr:
    """``min(size, bound)``: slices end where the axis ends."""
    if size == bound:
        return size
    if size.is_constant and bound.is_constant:
        known = [one.constant for one in (size, bound)]
        numbers = [one for one in known if isinstance(one, int)]
        return ex.literal(min(numbers)) if len(numbers) == 2 else bound
    least, most = bounds(size)[0], bounds(bound)[1]
    if most is not None and most <= max(least or 0, 1):
        return bound
    return Expr(ast.Call(ast.Name("min", ast.Load()), [size.node, bound.node], []))


def _is_negative(one: Expr) -> bool:
    return isinstance(one.node, ast.UnaryOp) and isinstance(one.node.op, ast.USub)


def _negate(one: Expr) -> Expr:
    assert isinstance(one.node, ast.UnaryOp)
    return Expr(one.node.operand)
