"""Functions that give an array another shape."""

from __future__ import annotations

from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.values import Array, Sequence, Unknown, Value
from nnx_migrate.sizes.asked_shapes import with_shape
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries
from nnx_migrate.sizes.signatures import reading


def _reshape(call: LibraryCall) -> Value:
    from nnx_migrate.sizes.attributes import OpenShape, ShapeOf

    array, shape = call.array(), call.get(1, "shape")
    if array is None or shape is None:
        return Unknown("reshape of an unknown value")
    sizes = shapes.shape_of(shape)
    if sizes is not None:
        parts = shape.items if isinstance(shape, Sequence) else ()
        lengths = (i for i, one in enumerate(parts) if isinstance(one, Unknown) and one.is_size)
        new = shapes.NewShape(sizes, frozenset(lengths))
        return shapes.reshape(array, new, call.interpreter.facts)
    if isinstance(shape, ShapeOf):
        return shape.shape_of
    if isinstance(shape, OpenShape):
        return _reshape_open(call, array, shape.source, shape.cut, shape.middle)
    return Array()


def _reshape_open(
    call: LibraryCall, array: Array, source: Array, cut: int, new_axes: tuple[Dim, ...]
) -> Value:
    """``x.reshape(y.shape[:-n] + sizes)``: when x and y agree there, only the end changes."""
    old = list(array.last_sizes(-cut)) if cut < 0 and array.axis(-1) is not None else []
    lead = [source.axis(cut - 1)] if cut < 0 else [source.axis(-1)]
    new = shapes.NewShape(new_axes)
    part = shapes.reshape(Array(tuple(old), len(old)), new, call.interpreter.facts)
    if not old or source != array:
        sizes = [None if size is not None and size.text == "-1" else size for size in new_axes]
        return Array((*lead, *sizes), least=len(sizes))
    return Array((*lead, *part.tail), least=len(part.tail))


def _broadcast_to(call: LibraryCall) -> Value:
    found = with_shape(call)
    return found if isinstance(found, Array) else Array()


ARRAYS: Summaries = {
    "reshape": reading(
        "a|operand shape|newshape|new_sizes order|dimensions * copy out_sharding", _reshape
    ),
    "broadcast_to": reading("array|arr shape * out_sharding subok", _broadcast_to),
}
