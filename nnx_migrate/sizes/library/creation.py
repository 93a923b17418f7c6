"""Functions that make arrays."""

from __future__ import annotations

from collections.abc import Callable

from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.values import Array, Sequence, Static, Unknown, Value, ending
from nnx_migrate.sizes.library.axes import inserted
from nnx_migrate.sizes.library.fallback import unmodelled
from nnx_migrate.sizes.library_call import LibraryCall, Summaries


def _made(index: int) -> Callable[[LibraryCall], Value]:
    def make(call: LibraryCall) -> Value:
        from nnx_migrate.sizes.attributes import OpenShape, ShapeOf

        shape = call.get(index, "shape")
        if isinstance(shape, ShapeOf) and not isinstance(shape, Sequence):
            return shape.shape_of
        if isinstance(shape, OpenShape):
            return shape.array
        sizes = shapes.shape_of(shape) if shape is not None else None
        return shapes.array_of(sizes) if sizes is not None else Unknown("shape unknown")

    return make


def _arange(call: LibraryCall) -> Value:
    stop = call.args[0] if len(call.args) == 1 else None
    return Array((stop.expr if isinstance(stop, Static) else None,), 1)


def _eye(call: LibraryCall) -> Value:
    size = call.args[0].expr if call.args and isinstance(call.args[0], Static) else None
    return Array((size, size), 2)


def _random(call: LibraryCall) -> Value:
    index = {"randint": 1, "normal": 1, "uniform": 1, "bernoulli": 2}.get(
        call.symbol.split(".")[-1]
    )
    shape = call.kwargs.get("shape") or (call.get(index, "shape") if index else None)
    sizes = shapes.shape_of(shape) if shape is not None else None
    return shapes.array_of(sizes) if sizes is not None else Array()


def _one_hot(call: LibraryCall) -> Value:
    array, count = call.array(0, "x"), call.get(1, "num_classes")
    size = count.expr if isinstance(count, Static) else None
    if array is None:
        return ending(size)
    return inserted(array, -1, size)


ARRAYS: Summaries = {
    "zeros": _made(0),
    "ones": _made(0),
    "empty": _made(0),
    "full": _made(0),
    "arange": _arange,
    "iota": unmodelled,
    "eye": _eye,
    "one_hot": _one_hot,
}
SYMBOLS: Summaries = {
    "jax.random.normal": _random,
    "jax.random.uniform": _random,
    "jax.random.bernoulli": _random,
    "jax.random.randint": _random,
}
