"""Calls of lifted modules: the body sees inputs without the lifted axis, results get one."""

from __future__ import annotations

from collections.abc import Callable

from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.questions import constant_of, is_none
from nnx_migrate.abstract.values import Array, Lift, Record, Sequence, Static, Unknown, Value
from nnx_migrate.sizes.ranks import is_row

Args = tuple[Value, ...]
_KNOWN = 6  # axes of an array of unknown rank that are worth following


def call_through_lifts(lifts: tuple[Lift, ...], args: Args, run: Callable[[Args], Value]) -> Value:
    """Result of a call through ``lifts`` (outermost first); ``run`` is the body's own call."""
    if not lifts:
        return run(args)
    lift, *inner = lifts
    count = 1 if lift.carries else 0
    axes = _spread(lift.in_axes, len(args) - count)
    arguments = tuple(_slice(one, axis) for one, axis in zip(args[count:], axes, strict=True))
    result = call_through_lifts(tuple(inner), (*args[:count], *arguments), run)
    if not lift.carries:
        return _stack(result, lift.out_axes)
    if not isinstance(result, Sequence) or len(result.items) != 2:
        return Unknown("the body of a scan returns no pair")
    return Sequence((result.items[0], _stack(result.items[1], lift.out_axes)))


def _spread(axes: Value, count: int) -> list[Value]:
    """One axis (or tree of them) for each argument."""
    if isinstance(axes, Sequence) and len(axes.items) == count:
        return list(axes.items)
    known = isinstance(axes, Static) or is_whole(axes)
    return [axes if known else Unknown("axes unknown")] * count


def number_of(axis: Value) -> int | None:
    """The number of an axis; None when it is none, or nobody knows."""
    constant = constant_of(axis)
    return constant if type(constant) is int else None


def is_whole(axis: Value) -> bool:
    """Whether the argument is passed whole: ``nn.broadcast``, and None for ``nn.vmap``."""
    return getattr(axis, "symbol", "") == "flax.linen.broadcast" or is_none(axis) is True


def _slice(value: Value, axis: Value) -> Value:
    """What the body sees of an argument."""
    if is_whole(axis):
        return value
    return _along(value, axis, _slice, _without) or Unknown("an input of a lifted call")


def _along(
    value: Value,
    axis: Value,
    inside: Callable[[Value, Value], Value],
    change: Callable[[Array, int], Array],
) -> Value | None:
    """A value with ``change`` made to each array at its axis; None where one is not known."""
    if is_none(value) is True:
        return value
    if isinstance(value, Sequence):
        axes = _spread(axis, len(value.items))
        parts = (inside(one, each) for one, each in zip(value.items, axes, strict=True))
        return Sequence(tuple(parts), value.is_list)
    if isinstance(value, Record) and isinstance(axis, Static):
        return Record({key: inside(one, axis) for key, one in value.entries.items()})
    array, index = as_array(value), number_of(axis)
    return None if array is None or index is None else change(array, index)


def _without(array: Array, index: int) -> Array:
    if array.rank is not None:
        sizes = list(array.last_sizes(array.rank))
        if not -array.rank <= index < array.rank:
            return Array()
        del sizes[index]
        return Array(tuple(sizes), array.rank - 1)
    if index < 0:
        sizes = list(array.last_sizes(max(len(array.tail), -index, min(_KNOWN, -index + 1))))
        del sizes[index]
        return array.of(tuple(sizes), -1)
    if index == 0:  # counted from the end, the sizes stay what they are
        return array.of(array.last_sizes(max(1, len(array.tail))), -1)
    if index > 1 and not array.has(index + 2):  # it may be the last one
        return array.of((None,), -1)
    # Axis 1 is that of steps behind the batch: where it is the last one, callers show it.
    return array.behind(index, -1)


def _stack(value: Value, axis: Value) -> Value:
    """A result of all steps or lanes."""
    if getattr(axis, "symbol", "") == "flax.linen.broadcast":
        return value
    return _along(value, axis, _stack, _with) or Unknown("a result of a lifted call")


def _with(array: Array, index: int) -> Array:
    if array.rank is not None:
        sizes = list(array.last_sizes(array.rank))
        sizes.insert(index if index >= 0 else index + array.rank + 1, None)
        return Array(tuple(sizes), array.rank + 1)
    sizes = list(array.last_sizes(max(len(array.tail), 1)))
    if index < 0:
        sizes[:0] = [None] * max(0, -index - len(sizes))
        sizes.insert(len(sizes) + 1 + index, None)
        return array.of(tuple(sizes), 1)
    if index == 0 and (array.has(1) or is_row(array)):
        return array.of(tuple(sizes), 1)
    return array.behind(index - 1, 1)
