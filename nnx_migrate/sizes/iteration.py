"""What a loop runs over, seen once for all its iterations."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.joining import join_all
from nnx_migrate.abstract.lists import alike
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
from nnx_migrate.sizes.frames import Loop
from nnx_migrate.sizes.statics import static_of

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

_UNROLL = 12  # sequences known item by item are unrolled up to this length


@dataclass(frozen=True)
class Range(Value):
    """``range(...)``: its last item, where it stops; whether it goes up by one, and from 0."""

    last: Expr | None
    stop: Expr | None = None
    counts: bool = True
    from_zero: bool = True
    arguments: tuple[Expr, ...] | None = None  # as they are written
    is_open: bool = False  # what is no axis of an array says how many: ``range(steps)``


@dataclass(frozen=True)
class Backwards(Value):
    """``reversed(range(...))``, ``reversed(list(enumerate(...)))``."""

    items: Value


@dataclass(frozen=True)
class EnumerateValue(Value):
    """``enumerate(value, start)``."""

    value: Value
    start: Expr = ex.literal(0)  # noqa: RUF009 - a value that nothing changes


@dataclass(frozen=True)
class ZipValue(Value):
    """``zip(*values)``."""

    values: tuple[Value, ...]


def iteration_of(
    interpreter: Interpreter,
    value: Value,
    target: ast.expr,
    loop_node: ast.AST,
    foreign: bool = False,
) -> list[Value] | tuple[Value, Loop]:
    """Items one by one when they differ and are few, else one abstract item and its loop."""
    items = items_of(value)
    if items is not None and len(items) <= _UNROLL and not all(_plain(item) for item in items):
        return items
    value = _as_arrays(interpreter, value)
    loop = Loop(loop_node, interpreter.loop_names, foreign=foreign)
    first, rest = _parts(value)
    loop.first.extend(first)
    if not foreign:
        _leave_zip(interpreter, value)
    item = _abstract(rest, target, loop)
    loop.rounds = length_of(value)
    if not (first or loop.is_reordered):
        for one, other in combinations([loop_node, *loop.origins], 2):
            interpreter.loop_names.join(one, other)
    return item, loop


def _as_arrays(interpreter: Interpreter, value: Value) -> Value:
    """Inputs that are known to be arrays as such."""
    match value:
        case Argument():
            return interpreter.as_array(value)
        case EnumerateValue(value=inner):
            return replace(value, value=_as_arrays(interpreter, inner))
        case ZipValue(values=values):
            return ZipValue(tuple(_as_arrays(interpreter, one) for one in values))
    return value


def _leave_zip(interpreter: Interpreter, value: Value) -> None:
    """A loop over several lists may end before it met each submodule of one."""
    match value:
        case EnumerateValue(value=inner):
            _leave_zip(interpreter, inner)
        case ZipValue(values=values) if length_of(value) is None:
            for one in values:
                interpreter.leave(one)


def _parts(value: Value) -> tuple[list[Value], Value]:
    """Items known one by one at the head of a sequence, and the rest."""
    if isinstance(value, ConcatenatedList):
        return [], alike(value)
    if isinstance(value, ExtendedList):
        return list(value.first), value.rest
    if isinstance(value, EnumerateValue):
        first, rest = _parts(value.value)
        return list(_count(first, value.start)), EnumerateValue(rest, value.start)
    return [], value


def _count(items: list[Value], start: Expr) -> Iterator[Value]:
    for index, one in enumerate(items):
        number = ex.binary(start, ast.Add(), ex.literal(index))
        yield Sequence((Static(number), one))


def _plain(value: Value) -> bool:
    if isinstance(value, Sequence):
        return all(_plain(item) for item in value.items)
    return isinstance(value, Static)


def items_of(value: Value) -> list[Value] | None:
    """Items of a loop over a known sequence."""
    match value:
        case Sequence(items=items):
            return list(items)
        case Record(entries=entries):
            return [Static(ex.literal(key)) for key in entries]
        case EnumerateValue(value=inner):
            found = items_of(inner)
            if found is None:
                return None
            return list(_count(found, value.start))
        case ZipValue(values=values):
            columns = [items_of(one) for one in values]
            known = [column for column in columns if column is not None]
            if len(known) != len(columns) or not known:
                return None
            return [Sequence(row) for row in zip(*known, strict=False)]
        case Backwards(items=inner):
            found = items_of(inner)
            return None if found is None else found[::-1]
    return None


def _abstract(value: Value, target: ast.expr, loop: Loop) -> Value:
    """One item for all iterations; plain items are named by the loop's own target."""
    match value:
        case ConcatenatedList():
            return _abstract(alike(value), target, loop)
        case Range(last=last, counts=counts, from_zero=from_zero):
            if counts:
                loop.count(target, from_zero=from_zero)
            return _named(target, last, loop)
        case EnumerateValue(value=inner, start=start):
            first, second = _pair(target)
            loop.count(first, from_zero=start == ex.literal(0))
            count = length_of(inner)
            end = ex.binary(count, ast.Sub(), ex.literal(1)) if count else None
            end = end and ex.binary(start, ast.Add(), end)
            return Sequence((_named(first, end, loop), _abstract(inner, second, loop)))
        case Backwards(items=inner):
            item = _abstract(inner, target, loop)
            loop.is_reordered = True
            loop.counters.clear()
            loop.last |= {name: ex.name(name) for name in loop.last}
            return item
        case ZipValue(values=values):
            targets = _targets(target, len(values))
            pairs = zip(values, targets, strict=True)
            items = tuple(_abstract(one, sub, loop) for one, sub in pairs)
            if length_of(value) is None:
                # Nobody knows which of them ends first, and with it the last items of the others.
                loop.ends = False
                loop.last |= {name: ex.name(name) for name in loop.last}
            return Sequence(items)
        case RepeatedItem(item=Static(expr=expr)) if expr.names & value.last.keys():
            # Its text reads a variable of the comprehension that made it; the loop has its own.
            last = ex.substitute(expr, value.last)
            return _named(target, None if last.names & value.last.keys() else last, loop)
        case RepeatedItem(item=item, origin=origin):
            if origin is not None:
                loop.origins.append(origin)
                loop.last.update(value.last)
                if value.is_reordered:
                    loop.is_reordered = True
                    loop.last |= {name: ex.name(name) for name in value.last}
            return item
        case Choice():
            return _one_of(value, target, loop)
        case Static(expr=expr):
            return _named(target, _last_item(expr), loop)
        case Sequence(items=items) if items:
            whole = static_of(value)
            last = static_of(items[-1]) if whole else None
            return _named(target, last, loop)
        case Argument():
            return Array((None,))  # of a list the items may differ
        case Array():
            return Array((value.axis(-1),))
        case _:
            return Unknown("a loop over an unknown value", is_item=True)


def _last_item(items: Expr) -> Expr | None:
    """The text of what a loop over ``items`` meets last; an iterator cannot be asked for it."""
    match items.node:
        case ast.Call(func=ast.Name(id="reversed"), args=[inner]):
            return Expr(ast.Subscript(inner, ast.Constant(0), ast.Load()))
        case ast.Call(func=ast.Name(id="tuple" | "list" | "sorted")):
            pass
        case ast.Call() | ast.GeneratorExp():
            return None
    return Expr(ast.Subscript(items.node, ex.literal(-1).node, ast.Load()))


def _one_of(value: Choice, target: ast.expr, loop: Loop) -> Value:
    """One item of whichever is run over; a sequence without items has none, and no last one."""
    options = [one for one in value.options if items_of(one) != []]
    test = value.test if len(options) == len(value.options) == 2 else None
    loops = [Loop(loop.node, loop.names, foreign=loop.foreign) for _ in options]
    found = [_abstract(one, target, own) for one, own in zip(options, loops, strict=True)]
    for own in loops:
        loop.origins.extend(own.origins)
    if len(options) == len(value.options):
        for name in set.intersection(*(set(own.last) for own in loops)):
            lasts = [own.last[name] for own in loops]
            if all(one == lasts[0] for one in lasts):
                loop.last[name] = lasts[0]
            elif test is not None:
                loop.last[name] = ex.choose(test, *lasts)
    return join_all(test, found) if found else Unknown("a loop over nothing")


def _named(target: ast.expr | None, last: Expr | None, loop: Loop) -> Value:
    match target:
        case ast.Name(id=identifier):
            variable = loop.variable(identifier)
            if last is not None:
                loop.last[variable] = last
            return Static(ex.name(variable))
        case ast.Tuple(elts=targets):
            parts = []
            for index, one in enumerate(targets):
                end = last and Expr(ast.Subscript(last.node, ast.Constant(index), ast.Load()))
                parts.append(_named(one, end, loop))
            return Sequence(tuple(parts))
        case _:
            return Unknown("a loop target that is no name")


def _pair(target: ast.expr) -> tuple[ast.expr | None, ast.expr]:
    match target:
        case ast.Tuple(elts=[first, second]):
            return first, second
    return None, target


def _targets(target: ast.expr, count: int) -> list[ast.expr]:
    if isinstance(target, ast.Tuple) and len(target.elts) == count:
        return list(target.elts)
    return [target] * count


def length_of(value: Value) -> Expr | None:
    """How many items a loop over a value goes through, where that is known."""
    match value:
        case Static(expr=expr):
            return _count_of(expr.node)
        case Sequence(items=items):
            return ex.literal(len(items))
        case RepeatedItem(length=length):
            return length
        case Range(stop=stop, from_zero=True, counts=True):
            return stop
        case EnumerateValue(value=inner) | Backwards(items=inner):
            return length_of(inner)
        case ZipValue(values=values):
            lengths = {length_of(one) for one in values}
            return lengths.pop() if len(lengths) == 1 else None
    return None


def _count_of(items: ast.expr) -> Expr | None:
    """How many items an expression has; an iterator cannot be asked."""
    match items:
        case ast.Call(func=ast.Name(id="reversed" | "sorted" | "tuple" | "list"), args=[inner, *_]):
            return _count_of(inner)
        case ast.Call(func=ast.Name(id="filter" | "iter" | "map" | "zip")) | ast.GeneratorExp():
            return None
        case ast.Call(func=ast.Attribute(value=items, attr="items" | "keys" | "values"), args=[]):
            pass  # the views of a frozen dict are iterators
    return Expr(ast.Call(ast.Name("len", ast.Load()), [items], []))
