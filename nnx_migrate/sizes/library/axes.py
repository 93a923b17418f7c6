"""Functions that add, drop, reduce and reorder axes."""

from __future__ import annotations

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.values import Array, Static, Unknown, Value
from nnx_migrate.sizes.library.fallback import static_call
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries


def inserted(array: Array, axis: int, size: Dim) -> Value:
    """The array with one more axis of ``size`` at ``axis``."""
    if axis < 0:
        keep = -axis - 1
        front = array.known(max(2, keep)) if array.rank is None else array.known(array.rank)
        cut = len(front) - keep
        tail = (*front[:cut], size, *front[cut:]) if cut >= 0 else (size, *front)
        return array.of(tail, 1)
    if array.rank is None:  # behind all axes that are known to exist the new one may be the last
        return array.behind(axis - 1, 1)
    sizes = list(array.known(array.rank))
    return Array((*sizes[:axis], size, *sizes[axis:]), array.rank + 1)


def _expand_dims(call: LibraryCall) -> Value:
    array, axes = call.array(), call.numbers(1, "axis")
    if array is None or axes is None:
        return Unknown("expand_dims of unknown values")
    result: Value = array
    if array.rank is None and axes and max(axes) > 0:
        call.behind(array, max(axes) - 1)
    for axis in sorted(axes, key=lambda one: (one < 0, one)):
        result = inserted(result, axis, ex.literal(1)) if isinstance(result, Array) else result
    return result


def _squeeze(call: LibraryCall) -> Value:
    array, axes = call.array(), call.numbers(1, "axis")
    if array is None or axes is None:
        return Unknown("squeeze of unknown axes")
    return _without(call, array, axes)


def _without(call: LibraryCall, array: Array, axes: tuple[int, ...]) -> Value:
    if not _has(array, axes):
        return Unknown("an axis that the array lacks")
    if array.rank is None:
        gone_axes = len(set(axes))
        if all(axis < 0 for axis in axes):
            width = max(len(array.tail), -min(axes, default=0)) + 1
            tail = tuple(array.axis(i) for i in range(-width, 0) if i not in axes)
            return array.of(tail, -gone_axes)
        if any(axis < 0 for axis in axes):
            return array.of((None,), -gone_axes)
        return call.behind(array, max(axes), -gone_axes)
    gone = {axis % array.rank for axis in axes}
    sizes = array.known(array.rank)
    kept = [size for i, size in enumerate(sizes) if i not in gone]
    return Array(tuple(kept), len(kept))


def _has(array: Array, axes: tuple[int, ...]) -> bool:
    """Whether an array may have these axes: code that no call reaches may ask for others."""
    return array.rank is None or all(-array.rank <= axis < array.rank for axis in axes)


def _norm(call: LibraryCall) -> Value:
    """``jnp.linalg.norm(x, ord, axis)``."""
    return _reduce(call, 2)


def _reduce(call: LibraryCall, position: int = 1) -> Value:
    array = call.array() or call.array(0, "x")
    keep = call.kwargs.get("keepdims")
    if array is None:
        return static_call(call) if call.args else Unknown("reduction of an unknown value")
    axis = call.get(position, "axis")
    if axis is None or (isinstance(axis, Static) and axis.expr.text == "None"):
        return Array((), 0)
    axes = call.numbers(position, "axis")
    if axes is None:
        return Unknown("reduction over unknown axes")
    if isinstance(keep, Static) and keep.expr.is_constant and keep.expr.constant:
        if not _has(array, axes):
            return Unknown("an axis that the array lacks")
        if array.rank is not None:
            gone = {one % array.rank for one in axes}
            sizes = enumerate(array.known(array.rank))
            kept = tuple(ex.literal(1) if i in gone else s for i, s in sizes)
            return Array(kept, array.rank)
        return _ones(call, array, axes)
    return _without(call, array, axes)


def _ones(call: LibraryCall, array: Array, axes: tuple[int, ...]) -> Array:
    """The array of unknown rank with ``axes`` of size 1."""
    if any(axis >= 0 for axis in axes):
        return call.behind(array, max(axes)) if min(axes) >= 0 else array.of((None,))
    width = max(len(array.tail), -min(axes, default=0))
    sizes = (ex.literal(1) if i in axes else array.axis(i) for i in range(-width, 0))
    return array.of(tuple(sizes))


def _transpose(call: LibraryCall) -> Value:
    array, axes = call.array(), call.numbers(1, "axes")
    if array is None:
        return Unknown("transpose of an unknown value")
    if axes is None:
        known = array.rank is not None and len(call.args) < 2 and "axes" not in call.kwargs
        return (
            Array(tuple(reversed(array.known(array.rank or 0))), array.rank) if known else Array()
        )
    rank = len(axes)
    call.prove(array, exact=rank)
    sizes = Array(array.tail, rank, array.path).known(rank)
    return Array(tuple(sizes[axis % rank] for axis in axes), rank)


def _swapaxes(call: LibraryCall) -> Value:
    array, one, two = call.array(), call.number(1, "axis1"), call.number(2, "axis2")
    if array is None or one is None or two is None:
        return Unknown("swapaxes of unknown axes")
    if array.rank is None and (one >= 0 or two >= 0):
        call.prove(array, least=max(one, two) + 1)
        if min(one, two) < 0:
            return array.of((None,))
        return call.behind(array, max(one, two))
    rank = array.rank if array.rank is not None else max(len(array.tail), -one, -two)
    sizes = list(array.known(rank))
    sizes[one], sizes[two] = sizes[two], sizes[one]
    return array.of(tuple(sizes))


def _moveaxis(call: LibraryCall) -> Value:
    array, source, target = call.array(), call.number(1, "source"), call.number(2, "destination")
    if array is None or source is None or target is None:
        return Array()
    if array.rank is None:
        return array.of((None,))
    sizes = list(array.known(array.rank))
    moved = sizes.pop(source % array.rank)
    sizes.insert(target % array.rank, moved)
    return Array(tuple(sizes), array.rank)


_REDUCTIONS = (
    "mean sum max min prod var std any all logsumexp amax amin argmax argmin median nanmean nansum"
)
ARRAYS: Summaries = {
    **dict.fromkeys(_REDUCTIONS.split(), _reduce),
    "norm": _norm,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "swapaxes": _swapaxes,
    "moveaxis": _moveaxis,
}
