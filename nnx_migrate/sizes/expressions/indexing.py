"""``array[index]``: which axes stay and how long they are."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes, slices
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.questions import is_none
from nnx_migrate.abstract.values import (
    Array,
    ConcatenatedList,
    ExtendedList,
    RepeatedItem,
    Sequence,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.sizes.fields.numbers import may_be_no_place
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.source.walking import is_name

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def index_array(interpreter: Interpreter, array: Array, index: ast.expr, frame: Frame) -> Value:
    """Basic indexing of an array; what it does to the last axes."""
    array = interpreter.ranks.with_rank(array)
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    has_dots = any(map(_is_dots, parts))
    consumed = sum(1 for p in parts if not _adds_axis(p) and not _is_dots(p))
    if any(_may_be_several(interpreter, one, frame, is_alone=len(parts) == 1) for one in parts):
        return Array()
    interpreter.prove(array, least=consumed)
    if array.rank is None:
        array = replace(array, least=max(array.least, consumed))
    elif array.rank < consumed:
        return Unknown("too many indices")
    at = next((i for i, p in enumerate(parts) if _is_dots(p)), len(parts))
    before, after = parts[:at], parts[at + 1 :]
    if array.rank is None and not has_dots:
        return _index_open(interpreter, array, parts, consumed, frame)
    picks = {id(p): _pick(interpreter, p, frame) for p in parts if _is_pick(p)}
    if any(one is None or one.rank != 0 for one in picks.values()):
        interpreter.ranks.lacks_ranks |= array.rank is None or None in picks.values()
        return _gather(interpreter, array, before, after, picks, frame)
    if has_dots:
        return _index_tail(interpreter, array, before, after, frame)
    fill = [ast.Slice() for _ in range((array.rank or 0) - consumed)]
    return _index_fixed_rank(interpreter, array, [*parts, *fill], frame)


def _index_open(
    interpreter: Interpreter, array: Array, parts: list[ast.expr], axis_count: int, frame: Frame
) -> Value:
    """Indexing an array of unknown rank: the axes behind the indexed ones stay."""
    while parts and is_full(parts[-1]):  # they change nothing
        parts, axis_count = parts[:-1], axis_count - 1
    if not parts:
        return array
    picks = [part for part in parts if not isinstance(part, ast.Slice) and not _adds_axis(part)]
    added = sum(1 for part in parts if _adds_axis(part))
    numbers = [_pick(interpreter, part, frame) for part in picks]
    rest = interpreter.ranks.behind(array, axis_count - 1, added - len(picks))
    if all(one is not None and one.rank == 0 for one in numbers):
        return rest
    return replace(rest, grown=None)  # an index that is an array brings axes of its own


def _is_dots(part: ast.expr) -> bool:
    match part:
        case ast.Constant(value=value):
            return value is Ellipsis
    return is_name(part, "Ellipsis")


def _adds_axis(part: ast.expr) -> bool:
    if isinstance(part, ast.Constant):
        return part.value is None
    return isinstance(part, ast.Attribute) and part.attr == "newaxis"


def is_full(part: ast.expr) -> bool:
    """Whether an index leaves its axis as it is: ``x[:]``."""
    return isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step)


def _index_tail(
    interpreter: Interpreter,
    array: Array,
    before: list[ast.expr],
    after: list[ast.expr],
    frame: Frame,
) -> Value:
    consumed = sum(1 for p in after if not _adds_axis(p))
    sizes = array.last_sizes(consumed) if consumed else ()
    tail = _left(interpreter, sizes, after, frame)
    removed = sum(1 for p in before if not isinstance(p, ast.Slice) and not _adds_axis(p))
    changed = sum(1 for p in before if not _adds_axis(p))
    more = sum(1 for p in before if _adds_axis(p)) - removed + len(tail) - consumed
    if array.rank is not None:
        untouched = max(array.rank - consumed - changed, 0)
    else:
        untouched = max(array.depth - consumed - changed, 0) if before else 1
    front = array.last_sizes(consumed + untouched)[:untouched]
    return array.of((*front, *tail), more)


def _index_fixed_rank(
    interpreter: Interpreter, array: Array, parts: list[ast.expr], frame: Frame
) -> Value:
    """Indexing an array of known rank by numbers and slices."""
    out = _left(interpreter, array.last_sizes(array.rank or 0), parts, frame)
    return Array(tuple(out), len(out))


def _left(
    interpreter: Interpreter, sizes: Iterable[Expr | None], parts: list[ast.expr], frame: Frame
) -> list[Expr | None]:
    """The axes that an index for each of these sizes leaves, and those that it adds."""
    todo, left = list(sizes), list[Expr | None]()
    for part in parts:
        if _adds_axis(part):
            left.append(ex.literal(1))
            continue
        size = todo.pop(0)
        if isinstance(part, ast.Slice):
            left.append(_slice(interpreter, size, part, frame))
    return left


def _is_pick(part: ast.expr) -> bool:
    """Whether an index takes elements of an axis: a number or an array."""
    return not (isinstance(part, ast.Slice) or _adds_axis(part) or _is_dots(part))


def _may_be_several(
    interpreter: Interpreter, part: ast.expr, frame: Frame, *, is_alone: bool
) -> bool:
    """Whether what stands for one index may be a tuple of several, all axes (``DOTS = ...``) or a new one."""
    if isinstance(part, ast.Starred):
        return True
    if not _is_pick(part) or not (is_alone or isinstance(part, ast.Name | ast.Attribute)):
        return False
    value = interpreter.evaluate(part, frame)
    if isinstance(value, Unknown) or is_none(value) or _is_ellipsis(value):
        return True
    is_list = isinstance(value, Sequence) and value.is_list
    return (
        is_alone
        and isinstance(value, Sequence | RepeatedItem | ExtendedList | ConcatenatedList)
        and not is_list
    )


def _is_ellipsis(value: Value) -> bool:
    return isinstance(value, Static) and value.expr.text in ("...", "Ellipsis")


def _pick(interpreter: Interpreter, part: ast.expr, frame: Frame) -> Array | None:
    """An index as an array: a number has no axes; None for what may have any, or be a slice."""
    value = interpreter.single(interpreter.evaluate(part, frame))
    if isinstance(value, Static):  # a field is taken for a number
        expr = value.expr
        is_number = type(expr.constant) is int if expr.is_constant else not _is_slice(expr)
        return Array((), 0) if is_number else None
    if isinstance(value, Sequence):
        is_plain = all(isinstance(one, Static) for one in value.items)
        return Array((ex.literal(len(value.items)),), 1) if is_plain else None
    array = interpreter.array(value)
    return array if array is not None and array.rank is not None else None


def _is_slice(one: Expr) -> bool:
    return isinstance(one.node, ast.Call) and ast.unparse(one.node.func) == "slice"


_PICKED, _OPEN = "picked", "open"  # in a list of sizes: an axis taken from, axes in unknown number
Sizes = list[Expr | str | None]


def _gather(
    interpreter: Interpreter,
    array: Array,
    before: list[ast.expr],
    after: list[ast.expr],
    picks: dict[int, Array | None],
    frame: Frame,
) -> Array:
    """Indexing by arrays: their axes stand where the indexed ones were, or in front if those lie apart."""
    used, axes_behind = (sum(1 for p in side if not _adds_axis(p)) for side in (before, after))
    sizes: Sizes = [*[None] * used, _OPEN, *(array.last_sizes(axes_behind) if axes_behind else ())]
    if array.rank is not None:
        sizes = [*array.last_sizes(array.rank)]
    fill = len(sizes) - used - axes_behind
    parts = [*before, *([ast.Slice()] * fill), *after]
    made: Sizes = []
    for part in parts:
        size = ex.literal(1) if _adds_axis(part) else sizes.pop(0)
        if isinstance(part, ast.Slice) and not isinstance(size, str):
            size = _slice(interpreter, size, part, frame)
        made.append(_PICKED if id(part) in picks else size)
    sides = [any(map(_is_pick, side)) for side in (before, after)]
    if None in picks.values() or (all(sides) and fill == 0):  # where the axes stand is not known
        return _behind_all(made)
    arrays = [one for one in picks.values() if one is not None and one.rank != 0]
    together = shapes.broadcast(arrays, interpreter.ones)
    return _with_block(made, [*together.last_sizes(together.rank or 0)])


def _behind_all(sizes: Sizes) -> Array:
    """An array of which only the axes behind all indexed ones are known."""
    last = max(i for i, size in enumerate(sizes) if size == _PICKED)
    return _ending(sizes[last:])


def _with_block(sizes: Sizes, block: Sizes) -> Array:
    """An array of these sizes with the axes of its indices at their place."""
    at = [i for i, size in enumerate(sizes) if size == _PICKED]
    rest = [size for size in sizes if size != _PICKED]
    start = at[0] if at[-1] - at[0] + 1 == len(at) else 0
    return _ending([*rest[:start], *block, *rest[start:]])


def _ending(sizes: Sizes) -> Array:
    """An array of these sizes, as far as they are known from the last one on."""
    gaps = [i for i, size in enumerate(sizes) if isinstance(size, str)]
    known = [size for size in sizes[gaps[-1] + 1 if gaps else 0 :] if not isinstance(size, str)]
    if not gaps:
        return Array(tuple(known), len(known))
    return Array(tuple(known) or (None,), least=len(sizes) - len(gaps))


def _slice(
    interpreter: Interpreter, size: Expr | None, part: ast.Slice, frame: Frame
) -> Expr | None:
    bounds = [part.lower, part.upper, part.step]
    if not any(bounds):
        return size
    values = [interpreter.evaluate(one, frame) if one else None for one in bounds]
    low, high, step = (value.expr if isinstance(value, Static) else None for value in values)
    if part.step is not None or (part.lower and low is None) or (part.upper and high is None):
        return None if step is None or part.step else size
    places = [one.text for one in (low, high) if one is not None]
    if any(may_be_no_place(interpreter.project, interpreter.root.info, one) for one in places):
        return None
    return slices.slice_length(size, low, high)
