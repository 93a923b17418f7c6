"""Functions that add, drop, reduce and reorder axes."""

from __future__ import annotations

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.values import Array, Unknown, Value
from nnx_migrate.sizes.library.fallback import static_call
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries
from nnx_migrate.sizes.signatures import reading


def insert_axis(array: Array, axis: int, size: Dim) -> Value:
    """The array with one more axis of ``size`` at ``axis``."""
    if axis < 0:
        keep = -axis - 1
        front = (
            array.last_sizes(max(2, keep)) if array.rank is None else array.last_sizes(array.rank)
        )
        cut = len(front) - keep
        tail = (*front[:cut], size, *front[cut:]) if cut >= 0 else (size, *front)
        return array.of(tail, 1)
    if array.rank is None:  # behind all axes that are known to exist the new one may be the last
        return array.behind(axis - 1, 1)
    sizes = list(array.last_sizes(array.rank))
    return Array((*sizes[:axis], size, *sizes[axis:]), array.rank + 1)


def _expand_dims(call: LibraryCall) -> Value:
    array, axes = call.array(), call.numbers(1, "axis")
    if array is None or axes is None:
        return Unknown("expand_dims of unknown values")
    ordered = _in_turn(array, axes)
    if ordered is None:
        call.want_rank(array)
        return Unknown("expand_dims counted from both ends of an array of unknown rank")
    result: Value = array
    if array.rank is None and axes and max(axes) >= 0:
        call.behind(array, max(axes) - 1)
    for axis in ordered:
        result = insert_axis(result, axis, ex.literal(1)) if isinstance(result, Array) else result
    return result


def _in_turn(array: Array, axes: tuple[int, ...]) -> list[int] | None:
    """Axes of the result in an order in which they can be added one by one; None where none is known."""
    if array.rank is not None:
        return sorted(axis % (array.rank + len(axes)) for axis in axes)
    if all(axis < 0 for axis in axes):  # those at the end first: the others are counted with them
        return sorted(axes, reverse=True)
    return sorted(axes) if all(axis >= 0 for axis in axes) else None


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
            call.want_rank(array)
            return array.of((None,), -gone_axes)
        return call.behind(array, max(axes), -gone_axes)
    removals = {axis % array.rank for axis in axes}
    sizes = array.last_sizes(array.rank)
    rest = [size for i, size in enumerate(sizes) if i not in removals]
    return Array(tuple(rest), len(rest))


def _has(array: Array, axes: tuple[int, ...]) -> bool:
    """Whether an array may have these axes: code that no call reaches may ask for others."""
    return array.rank is None or all(-array.rank <= axis < array.rank for axis in axes)


def _reduce(call: LibraryCall) -> Value:
    array, keeps = call.array(), call.flag(3, "keepdims")
    if array is None:
        return static_call(call) if call.args else Unknown("reduction of an unknown value")
    mask = call.get(2, "where")
    if mask is not None and call.is_given(2, "where"):  # it may have more axes, or longer ones
        array = _mask(call, array, call.interpreter.array(mask))
    axes = call.numbers(1, "axis")
    if keeps is None or (axes is None and call.is_given(1, "axis")):
        return Unknown("reduction over unknown axes, or which may keep them")
    if axes is None:
        return _all_ones(array) if keeps else Array((), 0)
    if not keeps:
        return _without(call, array, axes)
    if not _has(array, axes):
        return Unknown("an axis that the array lacks")
    if array.rank is None:
        return _ones(call, array, axes)
    removals = {one % array.rank for one in axes}
    sizes = enumerate(array.last_sizes(array.rank))
    return Array(tuple(ex.literal(1) if i in removals else s for i, s in sizes), array.rank)


def _mask(call: LibraryCall, array: Array, mask: Array | None) -> Array:
    if mask is None:
        return shapes.beside_unknown(array)
    found = shapes.broadcast([array, mask], call.interpreter.ones)
    call.interpreter.ranks.want(found, (array, mask))
    return found


def _all_ones(array: Array) -> Array:
    """The array with every axis of size 1."""
    width = array.rank if array.rank is not None else max(len(array.tail), 1)
    return array.of((ex.literal(1),) * width)


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
        known = array.rank is not None and not call.is_given(1, "axes")
        return (
            Array(tuple(reversed(array.last_sizes(array.rank or 0))), array.rank)
            if known
            else Array()
        )
    rank = len(axes)
    call.interpreter.prove(array, exact=rank)
    sizes = Array(array.tail, rank, array.path).last_sizes(rank)
    return Array(tuple(sizes[axis % rank] for axis in axes), rank)


def _swapaxes(call: LibraryCall) -> Value:
    array, one, two = call.array(), call.number(1, "axis1"), call.number(2, "axis2")
    if array is None or one is None or two is None:
        return Unknown("swapaxes of unknown axes")
    if array.rank is None and (one >= 0 or two >= 0):
        call.interpreter.prove(array, least=max(one, two) + 1)
        if min(one, two) < 0:
            return array.of((None,))
        return call.behind(array, max(one, two))
    rank = array.rank if array.rank is not None else max(len(array.tail), -one, -two)
    if not {one, two} <= {*range(-rank, rank)}:
        return Unknown("swapaxes of axes that it lacks")
    sizes = list(array.last_sizes(rank))
    sizes[one], sizes[two] = sizes[two], sizes[one]
    return array.of(tuple(sizes))


def _moveaxis(call: LibraryCall) -> Value:
    array, source, target = call.array(), call.number(1, "source"), call.number(2, "destination")
    if array is None or source is None or target is None:
        return Array()
    if array.rank is None:
        call.want_rank(array)
        return array.of((None,))
    sizes = list(array.last_sizes(array.rank))
    size = sizes.pop(source % array.rank)
    sizes.insert(target % array.rank, size)
    return Array(tuple(sizes), array.rank)


# of jax.numpy 0.10 and numpy 2: where keepdims stands differs
_REDUCTIONS = {
    "a axis dtype out keepdims where": "mean nanmean",
    "a axis dtype out keepdims initial where promote_integers": "sum prod nansum",
    "a axis out keepdims initial where": "max min amax amin",
    "a axis dtype out ddof keepdims * where correction": "std var",
    "a axis out keepdims * where": "any all",
    "a|operand axis out|index_dtype keepdims": "argmax argmin",
    "a axis out overwrite_input keepdims": "median",
    "a axis b! keepdims return_sign! where": "logsumexp",
    "a|x ord axis keepdims": "norm",
}
ARRAYS: Summaries = {
    **{n: reading(words, _reduce) for words, names in _REDUCTIONS.items() for n in names.split()},
    "expand_dims": reading("a|array axis|dimensions", _expand_dims),
    "squeeze": reading("a|array axis|dimensions", _squeeze),
    "transpose": reading("a|operand axes|permutation", _transpose),
    "swapaxes": reading("a axis1 axis2", _swapaxes),
    "moveaxis": reading("a source destination", _moveaxis),
}
