"""Shapes of functions of jax outside jax.numpy: images and convolutions."""

from __future__ import annotations

from collections.abc import Callable

from nnx_migrate.sizes import shapes
from nnx_migrate.sizes.library import LibraryCall
from nnx_migrate.sizes.values import Array, Sequence, Static, Unknown, Value


def _resize(call: LibraryCall) -> Value:
    """``jax.image.resize(image, shape, method)``."""
    from nnx_migrate.sizes.attributes import OpenShape, ShapeOf

    shape = call.get(1, "shape")
    if isinstance(shape, ShapeOf) and not isinstance(shape, Sequence):
        return shape.shape_of
    if isinstance(shape, OpenShape):
        return Array(shape.tail, None)
    sizes = shapes.shape_of(shape) if shape is not None else None
    return shapes.array_of(sizes) if sizes is not None else Unknown("resize to unknown sizes")


def _convolution(call: LibraryCall) -> Value:
    """Channels last, as the dimension numbers say; other layouts are not modelled."""
    kernel, numbers = call.array(1, "rhs"), call.get(6, "dimension_numbers")
    names = numbers.items if isinstance(numbers, Sequence) else ()
    statics = [one for one in names if isinstance(one, Static) and one.expr.is_constant]
    texts = [str(one.expr.constant) for one in statics]
    if kernel is None or len(texts) != 3 or not (texts[1][-1] == "O" and texts[2][-1] == "C"):
        return Unknown("a convolution of unknown layout")
    return Array((kernel.axis(-1),), len(texts[2]))


SUMMARIES: dict[str, Callable[[LibraryCall], Value]] = {
    "jax.image.resize": _resize,
    "jax.lax.conv_general_dilated": _convolution,
}
