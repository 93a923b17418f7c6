"""Functions that join, stack, cut, repeat and pad arrays."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import pairwise

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes, slices
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Array, RepeatedItem, Sequence, Static, Unknown, Value
from nnx_migrate.sizes.library.axes import insert_axis
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries
from nnx_migrate.sizes.ranks import with_fixed_rank
from nnx_migrate.sizes.signatures import reading
from nnx_migrate.source.walking import is_name


def _concatenate(call: LibraryCall) -> Value:
    listed = call.get(0, "arrays")
    if isinstance(listed, RepeatedItem):
        return Unknown("concatenation of unknown many")
    items = listed.items if isinstance(listed, Sequence) else ()
    arrays = [call.interpreter.array(one) for one in items]
    known = [array for array in arrays if array]
    if not known:
        return Unknown("concatenation of unknown values")
    axis = call.number(1, "axis", 0)
    if axis is None:
        return Array()
    if len(known) != len(arrays):
        known = [one or Array() for one in arrays]
    return _join(call, known, axis)


def _join(call: LibraryCall, arrays: list[Array], axis: int) -> Value:
    """All arrays have the same rank: what one shows holds for the others."""
    rank = next((array.rank for array in arrays if array.rank is not None), None)
    first = next((array for array in arrays if array.rank == rank), arrays[0])
    least = max(array.depth for array in arrays)
    for array in arrays:
        call.interpreter.prove(array, least=least, exact=rank)
    if axis >= 0 and rank is None:
        call.behind(replace(first, least=least), axis)
        tail = [
            shapes.fixed_size([one.axis(i) for one in arrays]) for i in range(axis + 1 - least, 0)
        ]
        return replace(first.of(tuple(tail) or (None,)), least=least)
    index = axis - (rank or 0) if axis >= 0 else axis
    sizes = [array.axis(index) for array in arrays]
    total = ex.total([s for s in sizes if s]) if all(sizes) else None
    width = rank if rank is not None else max(-index, shapes.shared_width(arrays))
    tail = [shapes.fixed_size([one.axis(i) for one in arrays]) for i in range(-width, 0)]
    tail[index] = total
    return (
        first.of(tuple(tail)) if rank is not None else replace(first.of(tuple(tail)), least=least)
    )


def _stack(call: LibraryCall) -> Value:
    listed, axis = call.get(0, "arrays"), call.number(1, "axis", 0)
    items = listed.items if isinstance(listed, Sequence) else ()
    items = (listed.item,) if isinstance(listed, RepeatedItem) else items
    arrays = [call.interpreter.array(one) for one in items]
    if not arrays or arrays[0] is None or axis is None:
        return Unknown("stack of unknown values")
    if arrays[0].rank is None and axis >= 0:
        call.behind(arrays[0], axis - 1)
    count = ex.literal(len(arrays)) if isinstance(listed, Sequence) else None
    return insert_axis(arrays[0], axis, count)


def _split(call: LibraryCall) -> Value:
    array, parts = call.array(0, "ary"), call.number(1, "indices_or_sections")
    axis = call.number(2, "axis", 0)
    if array is None or axis is None:
        return Unknown("split of an unknown value")
    index = axis if axis < 0 or array.rank is None else axis - array.rank
    if parts is None:
        points = call.get(1, "indices_or_sections")
        count = _count(call, points)
        return _split_at(array, points, axis) if count is None else _alike(array, count, index)
    if index >= 0:  # it may be the last one
        return Sequence((call.behind(array, index),) * parts, is_list=True)
    width = array.rank or max(len(array.tail), -index)
    pieces: list[Value] = []
    for number in range(parts):
        sizes = list(array.last_sizes(width))
        more = parts - 1 - number if call.symbol.endswith(".array_split") else 0
        sizes[index] = _part(sizes[index], ex.literal(parts), more)
        pieces.append(array.of(tuple(sizes)))
    return Sequence(tuple(pieces), is_list=True)


def _count(call: LibraryCall, parts: Value | None) -> Dim:
    """How many pieces, by a field that is declared to be a number: a tuple of points has none."""
    if not isinstance(parts, Static) or not call.symbol.endswith(".split"):
        return None
    fields = call.interpreter.root.info.fields
    numbers = [f"self.{one.name}" for one in fields if is_name(one.annotation, "int")]
    return parts.expr if parts.expr.text in numbers else None


def _alike(array: Array, count: Expr, index: int) -> Value:
    """``count`` pieces of one size."""
    if index >= 0:
        return Unknown("split along an axis that may be the last one")
    sizes = list(array.last_sizes(array.rank or max(len(array.tail), -index)))
    sizes[index] = _part(sizes[index], count, 0)
    return RepeatedItem(array.of(tuple(sizes)), count)


def _part(size: Dim, parts: Expr, more: int) -> Dim:
    """One of ``parts`` pieces: the first of ``array_split`` are longer where it does not come out even."""
    if size is None:
        return None
    whole = ex.binary(size, ast.Add(), ex.literal(more))
    return ex.binary(whole, ast.FloorDiv(), parts)


def _split_at(array: Array, points: Value | None, axis: int) -> Value:
    cuts = shapes.shape_of(points) if points is not None else None
    if cuts is None or axis != -1:
        return Unknown("split at unknown points")
    whole = array.axis(-1)
    pieces = [_piece(whole, low, high) for low, high in pairwise([ex.literal(0), *cuts, whole])]
    return Sequence(tuple(map(array.with_last, pieces)), is_list=True)


def _piece(whole: Dim, low: Dim, high: Dim) -> Dim:
    """Size of a piece between two points.

    A point that is a field is taken to lie on the axis where the class itself makes that.
    """
    if low is None or high is None:
        return None
    is_given = whole is not None and any(ex.is_input(name) for name in whole.names)
    if not is_given and any(map(_is_field, (low, high))):
        return ex.difference(high, low)
    return slices.slice_length(whole, low, None if high is whole else high)


def _is_field(point: Dim) -> bool:
    return point is not None and not point.is_constant


def _tile(call: LibraryCall) -> Value:
    array, reps = call.array(), call.get(1, "reps")
    counts = shapes.shape_of(reps) if reps is not None else None
    if array is None or not counts:
        return Array()
    if array.rank is None:  # it may have fewer axes than counts
        return Array((_times(array.axis(-1), counts[-1]),), least=len(counts))
    rank = max(array.rank, len(counts))
    one = (ex.literal(1),)
    sizes = (*one * (rank - array.rank), *array.last_sizes(array.rank))
    every = (*one * (rank - len(counts)), *counts)
    return Array(tuple(map(_times, sizes, every)), rank)


def _times(size: Dim, count: Dim) -> Dim:
    return None if size is None or count is None else ex.binary(size, ast.Mult(), count)


def _repeat(call: LibraryCall) -> Value:
    array, axis = call.array(), call.number(2, "axis")
    if array is None or axis is None:
        return Array()
    last = axis == -1 or (array.rank is not None and axis == array.rank - 1)
    count = call.get(1, "repeats")
    if last:
        size = array.axis(-1)
        known = size is not None and isinstance(count, Static)
        return array.with_last(
            ex.binary(size, ast.Mult(), count.expr)
            if known and size and isinstance(count, Static)
            else None
        )
    if array.rank is not None:
        sizes = list(array.last_sizes(array.rank))
        sizes[axis] = None
        return Array(tuple(sizes), array.rank)
    if axis >= 0:
        return call.behind(array, axis)
    return array.of(tuple(None if i == axis else array.axis(i) for i in range(axis, 0)))


def _pad(call: LibraryCall) -> Value:
    """Pairs written out, one for each axis; an axis without padding keeps its size."""
    array, widths = call.array(), call.get(1, "pad_width")
    pairs = widths.items if isinstance(widths, Sequence) else ()
    if array is None or not pairs or not all(isinstance(one, Sequence) for one in pairs):
        return Array()
    if array.rank is not None and array.rank != len(pairs):
        return Array()  # one pair for all axes, or an error
    if len(pairs) > 1:
        call.interpreter.prove(array, exact=len(pairs))
    sizes = array.last_sizes(len(pairs))
    padded = [_padding_size(size, pair) for size, pair in zip(sizes, pairs, strict=True)]
    return Array(tuple(padded), len(pairs) if len(pairs) > 1 else array.rank)


def _padding_size(size: Dim, pair: Value) -> Dim:
    ends = shapes.shape_of(pair)
    if ends is None or len(ends) != 2 or size is None or None in ends:
        return None
    return ex.total([size, *(one for one in ends if one is not None)])


def _glu(call: LibraryCall) -> Value:
    array, axis = call.array(0, "x"), call.number(1, "axis", -1)
    if axis != -1:
        return Unknown("glu along another axis")
    last = array.axis(-1) if array else None
    half = ex.binary(last, ast.FloorDiv(), ex.literal(2)) if last else None
    return array.with_last(half) if array else Unknown("glu of an unknown value")


def _take(call: LibraryCall) -> Value:
    array, ids, axis = call.array(), call.array(1, "indices"), call.number(2, "axis")
    if array is None or axis != 0:
        return Array()
    if array.rank is None:
        return replace(call.behind(array, 0), least=0, grown=None)
    lead = ids.last_sizes(ids.rank) if ids is not None and ids.rank is not None else (None,)
    rank = ids.rank + array.rank - 1 if ids is not None and ids.rank is not None else None
    return Array((*lead, *array.last_sizes(array.rank)[1:]), rank)


def _take_along(call: LibraryCall) -> Value:
    """As the indices along the axis; the other axes of both are broadcast."""
    array, ids, axis = call.array(0, "arr"), call.array(1, "indices"), call.number(2, "axis")
    if array is None or ids is None or axis is None:
        return Array()
    rank = array.rank if array.rank is not None else ids.rank
    if rank is not None:  # both have as many axes
        for one in (array, ids):
            call.interpreter.prove(one, exact=rank)
        array, ids = with_fixed_rank(array, rank), with_fixed_rank(ids, rank)
    found = shapes.broadcast([array, ids], call.interpreter.ones)
    if axis >= 0 and rank is None:
        return call.behind(found, axis)
    width = rank or max(len(found.tail), -axis)
    index = axis - width if axis >= 0 else axis
    sizes = [ids.axis(one) if one == index else found.axis(one) for one in range(-width, 0)]
    return Array(tuple(sizes), rank)


ARRAYS: Summaries = {
    "concatenate": reading("arrays|operands axis|dimension dtype out", _concatenate),
    "stack": reading("arrays axis out dtype", _stack),
    "take": reading("a indices axis out mode unique_indices indices_are_sorted fill_value", _take),
    "take_along_axis": reading("arr indices axis * mode fill_value", _take_along),
    "split": reading("ary indices_or_sections axis", _split),
    "array_split": reading("ary indices_or_sections axis", _split),
    "tile": reading("a|A reps", _tile),
    "repeat": reading("a repeats axis * total_repeat_length! out_sharding", _repeat),
    "pad": reading("a|array pad_width mode * constant_values end_values stat_length", _pad),
    "glu": reading("x axis", _glu),
}
