"""Functions run over an axis or the items of their arguments: ``jax.vmap``, ``jax.lax.scan``, ``jax.tree.map``, ``map``."""

from __future__ import annotations

import ast
from dataclasses import replace

from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.questions import constant_of, is_none
from nnx_migrate.abstract.shapes import fixed_size
from nnx_migrate.abstract.values import (
    NONE,
    Argument,
    Array,
    Library,
    Native,
    Partial,
    Record,
    Sequence,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.sizes.frames import Function
from nnx_migrate.sizes.library.axes import insert_axis
from nnx_migrate.sizes.library.fallback import unknown_result
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries
from nnx_migrate.sizes.ranks import is_row
from nnx_migrate.sizes.unknown_builders import builds_modules


def _vmap(call: LibraryCall) -> Value:
    """``jax.vmap(function, in_axes=0, out_axes=0)`` over one axis that is known."""
    function = call.get(0, "fun")
    if function is None:
        return Unknown("vmap of nothing")
    axes, out = call.get(1, "in_axes"), call.number(2, "out_axes", 0)

    def run_mapped(args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        in_axes = _axis_of_each(axes, len(args))
        if in_axes is None or out is None:
            return Unknown("vmap over axes nobody knows")
        inner = [_without(call, one, axis) for one, axis in zip(args, in_axes, strict=True)]
        named = {key: _without(call, one, 0) for key, one in kwargs.items()}
        values = [*inner, *named.values()]
        if any(one is None for one in values):
            return Unknown("vmap over a value nobody knows")
        arrays = tuple(one for one in inner if one is not None)
        known = {key: one for key, one in named.items() if one is not None}
        size = _mapped_size(
            [*zip(args, in_axes, strict=True), *((one, 0) for one in kwargs.values())]
        )
        return _with(_run(call, function, arrays, known), out, size)

    return Native(run_mapped)


def _run(
    call: LibraryCall,
    function: Value,
    args: tuple[Value, ...],
    kwargs: dict[str, Value] | None = None,
) -> Value:
    """Call the function inside; what it builds there is a problem: Linen raises there, or builds for every item."""
    interpreter, before = call.interpreter, set(call.interpreter.submodules)
    result = interpreter.call(function, args, kwargs or {}, call.node, call.frame)
    for key, module in interpreter.submodules.items():
        if key not in before and module.call is not None:
            reason = f"a submodule is built inside {ast.unparse(call.node.func)}"
            interpreter.problems.append((module.call, reason))
    return result


def _axis_of_each(axes: Value | None, count: int) -> list[int | None] | None:
    """The mapped axis of every argument; None for one that is not mapped."""
    if axes is None:
        return [0] * count
    parts = list(axes.items) if isinstance(axes, Sequence) else [axes] * count
    if len(parts) != count:
        return None
    found: list[int | None] = []
    for one in parts:
        constant = constant_of(one, unknown="?")
        if constant is not None and not isinstance(constant, int):
            return None
        found.append(constant)
    return found


def _without(call: LibraryCall, value: Value, axis: int | None) -> Value | None:
    """A value inside the mapped function; None when that is not known."""
    if axis is None or is_none(value):
        return value
    if isinstance(value, Sequence):
        items = [_without(call, one, axis) for one in value.items]
        known = tuple(one for one in items if one is not None)
        return Sequence(known, value.is_list) if len(known) == len(items) else None
    array = call.interpreter.array(value)
    if array is None or axis < 0:
        return None
    if array.rank is None:  # counted from the end, the sizes after the axis stay what they are
        return _with_front_axes(array, -1) if axis == 0 else call.behind(array, axis, -1)
    sizes = list(array.last_sizes(array.rank))
    if axis >= array.rank:
        return None
    del sizes[axis]
    return Array(tuple(sizes), array.rank - 1)


def _with_front_axes(array: Array, more: int) -> Array:
    """An array of unknown rank with ``more`` axes in front."""
    return replace(array.of(array.tail, more), path=array.path)


def _mapped_size(arguments: list[tuple[Value, int | None]]) -> Dim:
    """Size of the mapped axis, as some argument shows it."""
    pairs = [(as_array(one), axis) for one, axis in arguments if axis is not None]
    return fixed_size(
        [array.axis(axis) for array, axis in pairs if array and array.rank is not None]
    )


def _with(value: Value, axis: int, size: Dim = None) -> Value:
    """A result of the mapped function, with the mapped axis of ``size``."""
    if isinstance(value, Sequence):
        return Sequence(tuple(_with(one, axis, size) for one in value.items), value.is_list)
    if isinstance(value, Record):
        return Record({key: _with(one, axis, size) for key, one in value.entries.items()})
    array = as_array(value)
    if array is None:
        return Array((size,), 1) if isinstance(value, Static) and value != NONE else value
    if array.rank is None and axis == 0 and is_row(array):
        return _with_front_axes(array, 1)
    return insert_axis(array, axis, size)


def _scan(call: LibraryCall) -> Value:
    """``jax.lax.scan(f, init, xs)``: the carry keeps its shape, the outputs are stacked."""
    function, carry, over = call.get(0, "f"), call.get(1, "init"), call.get(2, "xs")
    if function is None or carry is None:
        return Unknown("scan of unknown values")
    item = NONE if over is None or is_none(over) else _without(call, over, 0)
    if item is None:
        return Sequence((carry, Unknown("what a scan stacks")))
    result = _run(call, function, (carry, item))
    stacked: Value = Unknown("what a scan stacks")
    if isinstance(result, Sequence) and len(result.items) == 2:
        stacked = NONE if is_none(result.items[1]) else _with(result.items[1], 0)
    return Sequence((carry, stacked))


def _tree_map(call: LibraryCall) -> Value:
    """``jax.tree.map(f, tree)`` of one array, or of a tuple or dict of arrays."""
    function, tree = call.get(0, "f"), call.get(1, "tree")
    if function is None or tree is None or len(call.args) > 2:
        return Unknown("a tree map of several trees")

    def over(value: Value) -> Value:
        match value:
            case Sequence(items=items):
                return Sequence(tuple(map(over, items)), value.is_list)
            case Record(entries=entries, default=None):
                return Record({key: over(one) for key, one in entries.items()})
        array = as_array(value)
        if array is None:
            return value if is_none(value) else Unknown("a tree map of an unknown value")
        is_open = isinstance(value, Argument) and call.interpreter.as_array(value) is value
        return _run(call, function, (Array((None,)) if is_open else array,))

    return over(tree)


def _map(call: LibraryCall) -> Value:
    """``q, k, v = map(split_heads, qkv)``: of lists that are known, where it is read once, in its place."""
    function, *lists = call.args or (Unknown(),)
    known = [one.items for one in lists if isinstance(one, Sequence)]
    is_whole = bool(lists) and len(known) == len(lists) and _is_read_at_once(call)
    is_plain = not builds_modules(call.interpreter.project, function)
    if is_whole and is_plain and isinstance(function, _FOLLOWED):
        return Sequence(tuple(_run(call, function, row) for row in zip(*known, strict=False)))
    return unknown_result(call)


_FOLLOWED = (Function, Library, Native, Partial)


def _is_read_at_once(call: LibraryCall) -> bool:
    match call.frame.scope.module.parents.of(call.node):
        case ast.Assign(targets=targets):
            return all(isinstance(one, ast.Tuple | ast.List) for one in targets)
        case ast.Call() | ast.Starred() | ast.For() | ast.comprehension():
            return True
    return False


SYMBOLS: Summaries = {
    "builtins.map": _map,
    "jax.vmap": _vmap,
    "jax.lax.scan": _scan,
    "jax.tree.map": _tree_map,
    "jax.tree_util.tree_map": _tree_map,
    "jax.tree_map": _tree_map,
}
