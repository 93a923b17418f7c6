"""Functions that make arrays."""

from __future__ import annotations

import ast
from math import ceil

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Array, Static, Unknown, Value, ending
from nnx_migrate.sizes.asked_shapes import with_shape
from nnx_migrate.sizes.library.axes import insert_axis
from nnx_migrate.sizes.library.fallback import unknown_result
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries
from nnx_migrate.sizes.signatures import reading
from nnx_migrate.source.walking import each


def _arange(call: LibraryCall) -> Value:
    """``arange(n)``; what starts elsewhere has a length that is not followed."""
    is_one = not call.is_given(1, "stop") and not call.is_given(2, "step")
    end = call.get(0, "start") if is_one else None
    return Array((_count(end.expr) if isinstance(end, Static) else None,), 1)


def _count(end: Expr) -> Dim:
    """How many whole numbers there are from 0 to ``end``; None where it may be no whole number."""
    if end.is_constant:
        number = end.constant
        return ex.literal(max(ceil(number), 0)) if isinstance(number, int | float) else None
    divided = any(isinstance(one.op, ast.Div) for one in each(end.node, ast.BinOp))
    return None if divided and not isinstance(end.node, ast.Call) else end


def _eye(call: LibraryCall) -> Value:
    rows, columns = call.get(0, "N"), call.get(1, "M")
    columns = columns if call.is_given(1, "M") else rows
    both = [one.expr if isinstance(one, Static) else None for one in (rows, columns)]
    return Array(tuple(both), 2)


def _random(call: LibraryCall) -> Value:
    """An array of the shape that is asked for; without it that of the other arguments."""
    shape = call.get(1, "shape")
    sizes = shapes.shape_of(shape) if shape is not None else None
    return shapes.array_of(sizes) if sizes is not None else Array()


def _one_hot(call: LibraryCall) -> Value:
    array, count = call.array(0, "x"), call.get(1, "num_classes")
    size = count.expr if isinstance(count, Static) else None
    axis = call.number(3, "axis", -1)
    if axis is None or (array is None and axis != -1):
        return Unknown("one_hot along an unknown axis")
    if array is None:
        return ending(size)
    if axis != -1:
        call.want_rank(array)
    return insert_axis(array, axis, size)


_PLACED = "* device sharding out_sharding"
_SHAPED = reading(f"shape dtype order {_PLACED}", with_shape)
ARRAYS: Summaries = {
    "zeros": _SHAPED,
    "ones": _SHAPED,
    "empty": _SHAPED,
    "full": reading(f"shape fill_value dtype order {_PLACED}", with_shape),
    "arange": reading(f"start stop step dtype {_PLACED}", _arange),
    "iota": unknown_result,
    "eye": reading("N M k dtype order * device", _eye),
    "one_hot": reading("x num_classes * dtype axis", _one_hot),
}
_IDENTITY = reading("N|n dtype", _eye)
SYMBOLS: Summaries = {
    "jax.numpy.identity": _IDENTITY,
    "numpy.identity": _IDENTITY,
    "jax.random.normal": reading("key shape dtype * out_sharding", _random),
    "jax.random.uniform": reading("key shape dtype minval maxval * out_sharding", _random),
    "jax.random.bernoulli": reading("key p shape mode * out_sharding", _random),
    "jax.random.randint": reading("key shape minval maxval dtype * out_sharding", _random),
}
