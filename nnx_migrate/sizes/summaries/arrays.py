"""Shapes of functions of jax outside jax.numpy: images and convolutions."""

from __future__ import annotations

from collections.abc import Callable

from nnx_migrate.abstract.values import Array, Sequence, Static, Unknown, Value
from nnx_migrate.sizes.asked_shapes import with_shape
from nnx_migrate.sizes.library_call import LibraryCall
from nnx_migrate.sizes.signatures import reading


def _convolution(call: LibraryCall) -> Value:
    """Channels last, as the dimension numbers say; other layouts are not modelled."""
    kernel, numbers = call.array(1, "rhs"), call.get(6, "dimension_numbers")
    names = numbers.items if isinstance(numbers, Sequence) else ()
    statics = [one for one in names if isinstance(one, Static) and one.expr.is_constant]
    texts = [str(one.expr.constant) for one in statics]
    if kernel is None or len(texts) != 3 or not (texts[1][-1] == "O" and texts[2][-1] == "C"):
        return Unknown("a convolution of unknown layout")
    return Array((kernel.axis(-1),), len(texts[2]))


def _dot_general(call: LibraryCall) -> Value:
    """Without batch axes the last ones are the right side's, unless all of it is contracted."""
    left, right = call.array(0, "lhs"), call.array(1, "rhs")
    match call.get(2, "dimension_numbers"):
        case Sequence(
            items=(
                Sequence(items=(_, Sequence(items=contracted))),
                Sequence(items=(_, Sequence(items=()))),
            )
        ):
            statics = [one.expr for one in contracted if isinstance(one, Static)]
            axes = [one.constant for one in statics if one.is_constant]
        case _:
            return Unknown("a product of unknown axes")
    if left is None or right is None or right.rank is None or len(axes) != len(contracted):
        return Unknown("a product of unknown values")
    counted = {axis % right.rank for axis in axes if isinstance(axis, int)}
    if len(counted) != len(axes) or right.rank == len(axes):
        return Unknown("a product whose last axis is the left side's")
    sizes = right.last_sizes(right.rank)
    rest = tuple(size for axis, size in enumerate(sizes) if axis not in counted)
    rank = left.rank + len(rest) - len(axes) if left.rank is not None else None
    return Array(rest, rank, least=len(rest))


SUMMARIES: dict[str, Callable[[LibraryCall], Value]] = {
    "jax.image.resize": reading("image shape method antialias precision", with_shape),
    "jax.lax.conv_general_dilated": _convolution,
    "jax.lax.dot_general": _dot_general,
}
