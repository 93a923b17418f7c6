"""How many rounds a loop over arrays has, where the class says it: ``outs = [conv(x) for conv in self.convs]``.

``__init__`` has no arrays to go through, and builds as many of what each round builds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import (
    Argument,
    Array,
    ConcatenatedList,
    ExtendedList,
    RepeatedItem,
    Sequence,
    Value,
)
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.iteration import Backwards, EnumerateValue, ZipValue
from nnx_migrate.source.walking import each

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

_FUNCTIONS = frozenset({"self", "len", "range", "max", "min"})


def note_lengths(interpreter: Interpreter, node: ast.expr, value: Value, frame: Frame) -> None:
    """Note the length of what a loop runs over, which is ``node``, or of its parts."""
    for part, inner in _lists(node, value):
        note_length(interpreter, part, inner, frame)


def note_length(interpreter: Interpreter, node: ast.expr, value: Value, frame: Frame) -> None:
    """Note how many arrays ``value`` has, which ``node`` gives or counts (``len(outs)``)."""
    if not frame.own:
        return
    length = _length(value)
    text = length.text if length is not None and _is_of_fields(length) else None
    if interpreter.lengths.setdefault(id(node), text) != text:
        interpreter.lengths[id(node)] = None  # it differs from time to time


def _lists(node: ast.expr, value: Value) -> Iterator[tuple[ast.expr, Value]]:
    """The parts of ``enumerate(...)`` and ``zip(...)``."""
    match node, value:
        case ast.Call(args=[over, *_]), EnumerateValue(value=inner):
            yield from _lists(over, inner)
        case ast.Call(args=[over]), Backwards(items=inner):
            yield from _lists(over, inner)
        case ast.Call(args=many), ZipValue(values=values) if len(many) == len(values):
            for over, inner in zip(many, values, strict=True):
                yield from _lists(over, inner)
        case _:
            yield node, value


def _length(value: Value) -> Expr | None:
    """How many arrays a value holds; None where it may hold others: sizes are looked at one by one."""
    match value:
        case Sequence(items=items) if all(map(_is_of_arrays, items)):
            return ex.literal(len(items))
        case RepeatedItem(length=length, is_numbered=True, item=item) if _is_of_arrays(item):
            return length
        case ExtendedList(first=first, rest=rest):
            return _total([Sequence(first), rest])
        case ConcatenatedList(parts=parts):
            return _total([*parts])
    return None


def _is_of_arrays(item: Value) -> bool:
    match item:
        case Array() | Argument():
            return True
        case Sequence(items=items):
            return all(map(_is_of_arrays, items))
    return False


def _total(parts: list[Value]) -> Expr | None:
    lengths = [_length(one) for one in parts]
    known = [one for one in lengths if one is not None]
    return ex.total(known) if len(known) == len(lengths) else None


def _is_of_fields(length: Expr) -> bool:
    """Whether the constructor and the call can compute it alike."""
    return all(one.id in _FUNCTIONS for one in each(length.node, ast.Name))
