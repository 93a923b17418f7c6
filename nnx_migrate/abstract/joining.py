"""What holds of a value that may be one of several."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Sequence_
from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.questions import is_none
from nnx_migrate.abstract.values import (
    Argument,
    Array,
    Choice,
    Record,
    Sequence,
    Static,
    Unknown,
    Value,
)


def as_array(value: Value) -> Array | None:
    """The value seen as an array, or None when it is none."""
    if isinstance(value, Argument):
        return value.array()
    if isinstance(value, Choice):
        options = [option for option in value.options if is_none(option) is not True]
        arrays = [as_array(option) for option in options]  # nothing takes None for an array
        known = [array for array in arrays if array]
        if not known or len(known) != len(arrays):
            return None
        if value.test is not None and len(known) == 2:
            return _join_two(value.test, known[0], known[1])
        return join_arrays(known)
    return value if isinstance(value, Array) else None


def join(test: Expr | None, yes: Value, no: Value) -> Value:
    """The value after ``if test``: ``yes`` in one branch, ``no`` in the other."""
    if yes is no or yes == no:
        return yes
    if isinstance(yes, Static) and isinstance(no, Static) and test is not None:
        return Static(ex.choose(test, yes.expr, no.expr))
    if isinstance(yes, Array) and isinstance(no, Array):
        return _join_two(test, yes, no)
    if isinstance(yes, Sequence) and isinstance(no, Sequence) and len(yes.items) == len(no.items):
        pairs = zip(yes.items, no.items, strict=True)
        return Sequence(tuple(join(test, a, b) for a, b in pairs), yes.is_list)
    if (
        isinstance(yes, Record)
        and isinstance(no, Record)
        and yes.entries.keys() == no.entries.keys()
    ):
        return Record({key: join(test, yes.entries[key], no.entries[key]) for key in yes.entries})
    if isinstance(yes, Unknown) and isinstance(no, Unknown):
        return yes
    options = [*_options(yes), *_options(no)]
    unique = [one for index, one in enumerate(options) if one not in options[:index]]
    if len(unique) == 2 and test is not None and unique == [yes, no]:
        return Choice((yes, no), test)
    return Choice(tuple(unique)) if len(unique) <= 8 else Unknown("too many possibilities")


def join_by_presence(
    presence: Mapping[str, bool], left_out: Mapping[str, bool], yes: Value, no: Value
) -> Value:
    """The value after a test on whether a parameter is None: the parameter itself, or another array.

    ``presence`` says what is known where ``yes`` holds, ``left_out`` where ``no`` does.
    """
    joined = join(None, yes, no)
    if len(presence) != 1 or not isinstance(joined, Choice):
        return joined
    ((path, is_given),) = presence.items()
    if left_out != {path: not is_given}:  # it may be given on both sides
        return joined
    own, other = (yes, no) if is_given else (no, yes)
    is_own = isinstance(own, Argument) and own.path == path
    return (
        Choice((own, other), parameter=path) if is_own and as_array(other) is not None else joined
    )


def join_all(test: Expr | None, values: Sequence_[Value]) -> Value:
    """The value when one of several holds; ``test`` chooses between exactly two."""
    result = values[-1]
    for other in reversed(values[:-1]):
        result = join(test if len(values) == 2 else None, other, result)
    return result


def join_arrays(arrays: list[Array]) -> Array:
    """What holds for all of the arrays."""
    first = arrays[0]
    if all(array == first for array in arrays[1:]):
        return first
    named = [len(array.tail) for array in arrays if not array.path]  # others know every axis
    count = max(1, min(named) if named else max(len(array.tail) for array in arrays))
    columns = zip(*(array.last_sizes(count) for array in arrays), strict=True)
    tail = tuple(
        column[0] if all(one == column[0] for one in column) else None for column in columns
    )
    return common_rank(arrays, tail)


def common_rank(arrays: list[Array], tail: tuple[Expr | None, ...]) -> Array:
    """An array of these sizes whose rank is what holds for all of the arrays."""
    first = arrays[0]
    if all(array.rank == first.rank for array in arrays) and first.rank is not None:
        return Array(tail, first.rank)
    least = min(array.least if array.rank is None else array.rank for array in arrays)
    same = all(array.rank is None and array.origin == first.origin for array in arrays)
    return Array(tail, least=least, grown=first.origin if same else None)


def _join_two(test: Expr | None, yes: Array, no: Array) -> Array:
    joined = join_arrays([yes, no])
    if test is None:
        return joined
    tail: list[Expr | None] = []
    for index in range(-max(len(joined.tail), 1), 0):
        one, two = yes.axis(index), no.axis(index)
        tail.append(ex.choose_size(test, one, two) if one and two else None)
    return replace(joined, tail=tuple(tail), path=None, grown=joined.origin)


def _options(value: Value) -> tuple[Value, ...]:
    return value.options if isinstance(value, Choice) else (value,)
