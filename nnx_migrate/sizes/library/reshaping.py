"""Functions that give an array another shape."""

from __future__ import annotations

from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.values import Array, Sequence, Unknown, Value
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries


def _reshape(call: LibraryCall) -> Value:
    from nnx_migrate.sizes.attributes import OpenShape, ShapeOf

    array, shape = call.array(), call.get(1, "shape") or call.kwargs.get("newshape")
    if array is None or shape is None:
        return Unknown("reshape of an unknown value")
    sizes = shapes.shape_of(shape)
    if sizes is not None:
        return shapes.reshape(array, sizes, call.interpreter.facts)
    if isinstance(shape, ShapeOf):
        return shape.shape_of
    if isinstance(shape, OpenShape):
        return _reshape_open(call, array, shape.source, shape.cut, shape.added)
    return Array()


def _reshape_open(
    call: LibraryCall, array: Array, source: Array, cut: int, added: tuple[Dim, ...]
) -> Value:
    """``x.reshape(y.shape[:-n] + sizes)``: when x and y agree there, only the end changes."""
    old = list(array.known(-cut)) if cut < 0 and array.axis(-1) is not None else []
    lead = [source.axis(cut - 1)] if cut < 0 else [source.axis(-1)]
    part = shapes.reshape(Array(tuple(old), len(old)), added, call.interpreter.facts)
    if not old or source != array:
        kept = [None if size is not None and size.text == "-1" else size for size in added]
        return Array((*lead, *kept), least=len(kept))
    return Array((*lead, *part.tail), least=len(part.tail))


def _broadcast_to(call: LibraryCall) -> Value:
    from nnx_migrate.sizes.attributes import OpenShape, ShapeOf

    shape = call.get(1, "shape")
    if isinstance(shape, ShapeOf) and not isinstance(shape, Sequence):
        return shape.shape_of
    if isinstance(shape, OpenShape):
        return shape.array
    sizes = shapes.shape_of(shape) if shape is not None else None
    return shapes.array_of(sizes) if sizes is not None else Array()


ARRAYS: Summaries = {
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
}
