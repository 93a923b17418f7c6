"""Shapes of library calls: jax.numpy, jax.lax, jax.nn, flax.linen functions, builtins.

A symbol that is not listed gives Unknown: size inference never answers when unsure.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes import shapes
from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.iteration import Enumerated, Range, Zipped
from nnx_migrate.sizes.values import (
    Array,
    Class,
    Factories,
    Function,
    Instance,
    Library,
    Partial,
    Record,
    Repeated,
    Sequence,
    Static,
    Unknown,
    Value,
    as_array,
)

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Frame, Interpreter

Dim = Expr | None


@dataclass(frozen=True)
class LibraryCall:
    """One call of a library function."""

    interpreter: Interpreter
    symbol: str
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    node: ast.Call
    frame: Frame

    def get(self, index: int, name: str) -> Value | None:
        """Argument by position or name."""
        return self.args[index] if index < len(self.args) else self.kwargs.get(name)

    def array(self, index: int = 0, name: str = "a") -> Array | None:
        """Argument as an array."""
        value = self.get(index, name)
        return as_array(value) if value is not None else None

    def number(self, index: int, name: str, default: int | None = None) -> int | None:
        """Argument as a known integer."""
        value = self.get(index, name)
        if value is None:
            return default
        known = isinstance(value, Static) and value.expr.is_constant
        constant = value.expr.constant if known and isinstance(value, Static) else None
        return constant if isinstance(constant, int) else None

    def numbers(self, index: int, name: str) -> tuple[int, ...] | None:
        """Argument as known integers."""
        value = self.get(index, name)
        sizes = shapes.shape_of(value) if value is not None else None
        if sizes is None or any(s is None or not s.is_constant for s in sizes):
            return None
        found = [s.constant for s in sizes if s]
        return tuple(n for n in found if isinstance(n, int))

    def assume(self, axis: int) -> None:
        """Say that ``axis`` is taken not to be the last one of an array of unknown rank."""
        text = f"axis {axis} is taken not to be the last one: the number of axes is not known here"
        if self.frame.own and all(node is not self.node for node, _ in self.interpreter.review):
            self.interpreter.review.append((self.node, text))


def call_library(
    interpreter: Interpreter,
    symbol: str,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """Abstract result of a library call."""
    call = LibraryCall(interpreter, symbol, args, kwargs, node, frame)
    name = symbol.rpartition(".")[2]
    from nnx_migrate.sizes.summaries import SUMMARIES

    if symbol in _OTHERS or symbol in SUMMARIES:
        handler = _OTHERS.get(symbol) or SUMMARIES[symbol]
    elif symbol.startswith("builtins."):
        handler = _BUILTINS.get(name, _static_call)
    elif symbol.startswith(_NUMERIC):
        handler = _ARRAYS.get(name) or (_elementwise if name in _ELEMENTWISE else _unknown)
    else:
        handler = _static_call if _is_pure(symbol) else _unknown
    return handler(call)


_NUMERIC = ("jax.numpy.", "numpy.", "jax.lax.", "jax.nn.", "flax.linen.", "jax.scipy.", "einops.")

_ELEMENTWISE = frozenset(
    "relu relu6 gelu silu swish elu selu celu glu_ leaky_relu sigmoid hard_sigmoid hard_swish "  # noqa: SIM905
    "hard_silu hard_tanh tanh softplus soft_sign log_sigmoid softmax log_softmax standardize normalize "
    "exp expm1 log log1p log2 sqrt rsqrt square abs absolute sign sin cos tan arcsin arccos arctan "
    "sinh cosh erf erf_inv floor ceil round clip negative reciprocal isnan isfinite nan_to_num "
    "add subtract multiply divide true_divide floor_divide mod remainder power maximum minimum "
    "logical_and logical_or logical_not logical_xor equal not_equal greater greater_equal less "
    "less_equal where select asarray array copy stop_gradient astype flip roll cumsum cumprod sort "
    "zeros_like ones_like full_like empty_like with_sharding_constraint sub mul div max_ min_ pow "
    "conj conjugate real imag angle log_cosh logaddexp identity hypot arctan2 mish squareplus "
    "convert_element_type optimization_barrier bitwise_and bitwise_or tril triu argsort "
    "with_logical_constraint checkpoint_name".split()
)


def _is_pure(symbol: str) -> bool:
    return symbol.startswith(("math.", "numpy.", "operator."))


def _unknown(call: LibraryCall) -> Value:
    package, _, name = call.symbol.rpartition(".")
    root = package.partition(".")[0]
    may_be_module = name[:1].isupper() and root not in _NO_MODULES
    return Unknown(f"{call.symbol} is not modelled", made_by=name if may_be_module else "")


_NO_MODULES = frozenset(("builtins", "collections", "functools", "jax", "numpy", "optax", "typing"))


def _elementwise(call: LibraryCall) -> Value:
    values = [*call.args, *(v for k, v in call.kwargs.items() if k in ("x", "a", "x1", "x2", "y"))]
    values = values[1:] if call.symbol.endswith((".where", ".select")) else values
    arrays = [array for array in map(as_array, values) if array]
    if not arrays:
        sequences = [v for v in values if isinstance(v, Sequence)]
        if call.symbol.endswith((".array", ".asarray")) and sequences:
            return _nested(sequences[0])
        return _static_call(call) if values else Unknown("no array argument")
    return shapes.broadcast(arrays)


def _nested(value: Value) -> Array:
    sizes: list[Dim] = []
    while isinstance(value, Sequence) and value.items:
        sizes.append(ex.literal(len(value.items)))
        value = value.items[0]
    return Array(tuple(sizes), len(sizes))


def _static_call(call: LibraryCall) -> Value:
    """A pure function of static values is static."""
    from nnx_migrate.sizes.expressions import static_of

    parts = [static_of(one) for one in call.args]
    named = {key: static_of(one) for key, one in call.kwargs.items()}
    if any(p is None for p in parts) or any(p is None for p in named.values()):
        return Unknown(f"{call.symbol} of unknown values")
    spelled = ast.unparse(call.node.func)
    if call.symbol.startswith("builtins.") or call.frame.scope.module is _root_module(call):
        made = ast.Call(
            ast.parse(spelled, mode="eval").body,
            [p.node for p in parts if p],
            [ast.keyword(key, p.node) for key, p in named.items() if p],
        )
        return _folded(call, Static(Expr(made)), [p for p in parts if p])
    return Static(ex.name(f"{ex.FOREIGN}{spelled}"))


def _root_module(call: LibraryCall) -> object:
    return call.interpreter.root.info.module


_FOLD: dict[str, Callable[..., object]] = {
    "builtins.int": int,
    "builtins.len": len,
    "builtins.max": max,
    "builtins.min": min,
    "builtins.sum": sum,
    "builtins.abs": abs,
    "builtins.round": round,
    "builtins.str": str,
    "builtins.tuple": tuple,
}


def _folded(call: LibraryCall, value: Static, parts: list[Expr]) -> Value:
    function = _FOLD.get(call.symbol)
    if function is None or call.kwargs or not all(part.is_constant for part in parts):
        return value
    try:
        result = function(*(part.constant for part in parts))
    except (TypeError, ValueError):
        return Unknown("a builtin that would fail")
    return Static(ex.literal(result)) if isinstance(result, int | float | str | tuple) else value


# ---- builtins


def _range(call: LibraryCall) -> Value:
    stop = call.args[-1] if len(call.args) < 3 else None
    last = ex.binary(stop.expr, ast.Sub(), ex.literal(1)) if isinstance(stop, Static) else None
    return Range(last)


def _enumerate(call: LibraryCall) -> Value:
    plain = len(call.args) == 1 and not call.kwargs
    return Enumerated(call.args[0]) if plain else Unknown("enumerate with a start")


def _length(call: LibraryCall) -> Value:
    value = call.args[0] if call.args else Unknown()
    if isinstance(value, Sequence):
        return Static(ex.literal(len(value.items)))
    if isinstance(value, Repeated):
        return Static(value.length) if value.length else Unknown("length unknown")
    return _static_call(call)


def _same_first(call: LibraryCall) -> Value:
    value = call.args[0] if call.args else Sequence((), is_list=True)
    if isinstance(value, Sequence):
        return Sequence(value.items, is_list=call.symbol.endswith("list"))
    return value if isinstance(value, Repeated | Array | Record) else _static_call(call)


def _reversed(call: LibraryCall) -> Value:
    value = call.args[0] if call.args else Unknown()
    if isinstance(value, Sequence):
        return Sequence(tuple(reversed(value.items)))
    return _static_call(call)


def _dict(call: LibraryCall) -> Value:
    base = call.args[0].entries if call.args and isinstance(call.args[0], Record) else {}
    return Record({**base, **call.kwargs})


def _getattr(call: LibraryCall) -> Value:
    from nnx_migrate.sizes.attributes import attribute_of

    base, name = call.args[0], call.args[1] if len(call.args) > 1 else Unknown()
    if isinstance(name, Static) and name.expr.is_constant:
        if isinstance(base, Static) and len(call.args) > 2:
            return _static_call(call)
        return attribute_of(call.interpreter, base, str(name.expr.constant), call.frame)
    if (
        isinstance(base, Instance)
        and isinstance(name, Static)
        and isinstance(name.expr.node, ast.JoinedStr)
    ):
        return _named_attribute(base, name.expr.node)
    return Unknown("getattr of an unknown name")


def _named_attribute(instance: Instance, template: ast.JoinedStr) -> Value:
    """``getattr(self, f"layer_{i}")``: what ``setattr`` with the same template stored."""
    return instance.attributes.get(_template(template), Unknown("no such attribute"))


def _template(node: ast.JoinedStr) -> str:
    parts = [p.value if isinstance(p, ast.Constant) else "*" for p in node.values]
    return "".join(str(part) for part in parts)


def _setattr(call: LibraryCall) -> Value:
    if (
        len(call.args) == 3
        and isinstance(call.args[0], Instance)
        and isinstance(call.args[1], Static)
    ):
        name = call.args[1].expr
        text = _template(name.node) if isinstance(name.node, ast.JoinedStr) else None
        text = str(name.constant) if name.is_constant else text
        if text:
            call.args[0].attributes[text] = call.args[2]
    return Static(ex.literal(None))


def _super(call: LibraryCall) -> Value:
    return Library("<super>")


_BUILTINS: dict[str, Callable[[LibraryCall], Value]] = {
    "range": _range,
    "enumerate": _enumerate,
    "zip": lambda call: Zipped(call.args),
    "len": _length,
    "list": _same_first,
    "tuple": _same_first,
    "reversed": _reversed,
    "dict": _dict,
    "getattr": _getattr,
    "setattr": _setattr,
    "super": _super,
    "isinstance": _unknown,
    "callable": _unknown,
    "hasattr": _unknown,
    "print": lambda call: Static(ex.literal(None)),
}

# ---- arrays


def _made(index: int) -> Callable[[LibraryCall], Value]:
    def make(call: LibraryCall) -> Value:
        from nnx_migrate.sizes.attributes import OpenShape, ShapeOf

        shape = call.get(index, "shape")
        if isinstance(shape, ShapeOf) and not isinstance(shape, Sequence):
            return shape.shape_of
        if isinstance(shape, OpenShape):
            return Array(shape.tail, None)
        sizes = shapes.shape_of(shape) if shape is not None else None
        return shapes.array_of(sizes) if sizes is not None else Unknown("shape unknown")

    return make


def _arange(call: LibraryCall) -> Value:
    stop = call.args[0] if len(call.args) == 1 else None
    return Array((stop.expr if isinstance(stop, Static) else None,), 1)


def _eye(call: LibraryCall) -> Value:
    size = call.args[0].expr if call.args and isinstance(call.args[0], Static) else None
    return Array((size, size), 2)


def _concatenate(call: LibraryCall) -> Value:
    listed = call.get(0, "arrays")
    if isinstance(listed, Repeated):
        return Unknown("concatenation of unknown many")
    arrays = [as_array(one) for one in listed.items] if isinstance(listed, Sequence) else []
    known = [array for array in arrays if array]
    if not known:
        return Unknown("concatenation of unknown values")
    name = "dimension" if "lax" in call.symbol else "axis"
    axis = call.number(1, name, 0)
    if axis is None:
        return Array()
    if len(known) != len(arrays):
        known = [one or Array() for one in arrays]
    if axis == 0 and all(array.rank is None for array in known):
        call.assume(axis)
    return _joined(known, axis)


def _joined(arrays: list[Array], axis: int) -> Value:
    rank = next((array.rank for array in arrays if array.rank is not None), None)
    first = next((array for array in arrays if array.rank == rank), arrays[0])
    if axis >= 0 and rank is None:
        # the axis is taken not to be the last one: sizes there must agree
        lasts = [array.axis(-1) for array in arrays if array.axis(-1)]
        return Array((lasts[0] if lasts and axis == 0 else None,), None)
    index = axis - (rank or 0) if axis >= 0 else axis
    sizes = [array.axis(index) for array in arrays]
    total = ex.total([s for s in sizes if s]) if all(sizes) else None
    width = rank if rank is not None else max(-index, 1)
    tail = [
        next((a.axis(i) for a in arrays if a.axis(i) is not None), None) for i in range(-width, 0)
    ]
    tail[index] = total
    return Array(tuple(tail), first.rank)


def _stack(call: LibraryCall) -> Value:
    listed, axis = call.get(0, "arrays"), call.number(1, "axis", 0)
    arrays = [as_array(one) for one in listed.items] if isinstance(listed, Sequence) else []
    if isinstance(listed, Repeated):
        arrays = [as_array(listed.item)]
    if not arrays or arrays[0] is None or axis is None:
        return Unknown("stack of unknown values")
    count = ex.literal(len(arrays)) if isinstance(listed, Sequence) else None
    return _inserted(arrays[0], axis, count)


def _inserted(array: Array, axis: int, size: Dim) -> Value:
    if axis < 0:
        keep = -axis - 1
        front = array.known(2) if array.rank is None else array.known(array.rank)
        cut = len(front) - keep
        tail = (*front[:cut], size, *front[cut:]) if cut >= 0 else (size, *front)
        return Array(tail, array.rank + 1 if array.rank is not None else None)
    if array.rank is None:
        return Array((array.axis(-1),), None)
    sizes = list(array.known(array.rank))
    return Array((*sizes[:axis], size, *sizes[axis:]), array.rank + 1)


def _expand_dims(call: LibraryCall) -> Value:
    array, axes = call.array(), call.numbers(1, "axis")
    if array is None or axes is None:
        return Unknown("expand_dims of unknown values")
    result: Value = array
    for axis in sorted(axes, key=lambda one: (one < 0, one)):
        result = _inserted(result, axis, ex.literal(1)) if isinstance(result, Array) else result
    return result


def _squeeze(call: LibraryCall) -> Value:
    array, axes = call.array(), call.numbers(1, "axis")
    if array is None or axes is None:
        return Unknown("squeeze of unknown axes")
    return _without(array, axes)


def _without(array: Array, axes: tuple[int, ...]) -> Value:
    if array.rank is None:
        negative = [axis for axis in axes if axis < 0]
        if len(negative) == len(axes):
            width = max(len(array.tail), -min(axes)) + 1
            kept = [array.axis(i) for i in range(-width, 0) if i not in axes]
            return Array(tuple(kept), None)
        return Array((array.axis(-1),), None) if -1 not in axes else Array()
    gone = {axis % array.rank for axis in axes}
    sizes = array.known(array.rank)
    kept = [size for i, size in enumerate(sizes) if i not in gone]
    return Array(tuple(kept), len(kept))


def _reduce(call: LibraryCall) -> Value:
    array = call.array() or call.array(0, "x")
    keep = call.kwargs.get("keepdims")
    if array is None:
        return _static_call(call) if call.args else Unknown("reduction of an unknown value")
    axis = call.get(1, "axis")
    if axis is None or (isinstance(axis, Static) and axis.expr.text == "None"):
        return Array((), 0)
    axes = call.numbers(1, "axis")
    if axes is None:
        return Unknown("reduction over unknown axes")
    if array.rank is None and axes and max(axes) >= 0:
        call.assume(max(axes))
    if isinstance(keep, Static) and keep.expr.is_constant and keep.expr.constant:
        if array.rank is not None:
            gone = {one % array.rank for one in axes}
            sizes = enumerate(array.known(array.rank))
            kept = tuple(ex.literal(1) if i in gone else s for i, s in sizes)
            return Array(kept, array.rank)
        return array.with_last(ex.literal(1)) if -1 in axes else Array((array.axis(-1),), None)
    return _without(array, axes)


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
        return Array((*lead, *kept), None)
    return Array((*lead, *part.tail), None)


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
    sizes = Array(array.tail, rank, array.path).known(rank)
    return Array(tuple(sizes[axis % rank] for axis in axes), rank)


def _swapaxes(call: LibraryCall) -> Value:
    array, one, two = call.array(), call.number(1, "axis1"), call.number(2, "axis2")
    if array is None or one is None or two is None:
        return Unknown("swapaxes of unknown axes")
    if array.rank is None and (one >= 0 or two >= 0):
        if -1 in (one, two) or max(one, two) > 1:  # either may be the last axis
            return Array()
        call.assume(max(one, two))
        return Array((array.axis(-1),), None)
    rank = array.rank if array.rank is not None else max(len(array.tail), -one, -two)
    sizes = list(array.known(rank))
    sizes[one], sizes[two] = sizes[two], sizes[one]
    return Array(tuple(sizes), array.rank)


def _moveaxis(call: LibraryCall) -> Value:
    array, source, target = call.array(), call.number(1, "source"), call.number(2, "destination")
    if array is None or source is None or target is None or array.rank is None:
        return Array()
    sizes = list(array.known(array.rank))
    moved = sizes.pop(source % array.rank)
    sizes.insert(target % array.rank, moved)
    return Array(tuple(sizes), array.rank)


def _einsum(call: LibraryCall) -> Value:
    equation = call.args[0] if call.args else Unknown()
    if not (isinstance(equation, Static) and equation.expr.is_constant):
        return Unknown("einsum equation unknown")
    operands = [as_array(one) or Array() for one in call.args[1:]]
    return shapes.einsum(str(equation.expr.constant), operands)


def _matmul(call: LibraryCall) -> Value:
    one, two = call.array(0), call.array(1, "b")
    return shapes.contract_last(one, two) if one and two else Unknown("matmul of unknown values")


def _one_hot(call: LibraryCall) -> Value:
    array, count = call.array(0, "x"), call.get(1, "num_classes")
    size = count.expr if isinstance(count, Static) else None
    if array is None:
        return Array((size,), None)
    return _inserted(array, -1, size)


def _take(call: LibraryCall) -> Value:
    array, ids, axis = call.array(), call.array(1, "indices"), call.number(2, "axis")
    if array is None or axis != 0 or array.rank is None:
        return Array((array.axis(-1),), None) if array and axis == 0 else Array()
    lead = ids.known(ids.rank) if ids is not None and ids.rank is not None else (None,)
    rank = ids.rank + array.rank - 1 if ids is not None and ids.rank is not None else None
    return Array((*lead, *array.known(array.rank)[1:]), rank)


def _split(call: LibraryCall) -> Value:
    array, parts = call.array(0, "ary"), call.number(1, "indices_or_sections")
    axis = call.number(2, "axis", 0)
    if array is None or axis is None:
        return Unknown("split of an unknown value")
    if parts is None:
        return _split_at(array, call.get(1, "indices_or_sections"), axis)
    index = axis if axis < 0 or array.rank is None else axis - array.rank
    if index >= 0:
        return Sequence((Array((array.axis(-1),), None),) * parts, is_list=True)
    size = array.axis(index)
    each = ex.binary(size, ast.FloorDiv(), ex.literal(parts)) if size else None
    width = array.rank or max(len(array.tail), -index)
    sizes = list(array.known(width))
    sizes[index] = each
    return Sequence((Array(tuple(sizes), array.rank),) * parts, is_list=True)


def _split_at(array: Array, points: Value | None, axis: int) -> Value:
    cuts = shapes.shape_of(points) if points is not None else None
    if cuts is None or axis != -1:
        return Unknown("split at unknown points")
    edges: list[Dim] = [ex.literal(0), *cuts, array.axis(-1)]
    pieces = []
    for low, high in pairwise(edges):
        pieces.append(array.with_last(ex.binary(high, ast.Sub(), low) if low and high else None))
    return Sequence(tuple(pieces), is_list=True)


def _broadcast_to(call: LibraryCall) -> Value:
    from nnx_migrate.sizes.attributes import OpenShape, ShapeOf

    shape = call.get(1, "shape")
    if isinstance(shape, ShapeOf) and not isinstance(shape, Sequence):
        return shape.shape_of
    if isinstance(shape, OpenShape):
        return Array(shape.tail, None)
    sizes = shapes.shape_of(shape) if shape is not None else None
    return shapes.array_of(sizes) if sizes is not None else Array()


def _tile(call: LibraryCall) -> Value:
    array, counts = call.array(), call.numbers(1, "reps")
    keeps = array is not None and counts is not None and counts and counts[-1] == 1
    return Array((array.axis(-1),), None) if keeps and array else Array()


def _repeat(call: LibraryCall) -> Value:
    array, axis = call.array(), call.number(2, "axis")
    if array is None or axis is None:
        return Array()
    last = axis == -1 or (array.rank is not None and axis == array.rank - 1)
    count = call.get(1, "repeats")
    if last:
        size = array.axis(-1)
        known = size is not None and isinstance(count, Static)
        return array.with_last(
            ex.binary(size, ast.Mult(), count.expr)
            if known and size and isinstance(count, Static)
            else None
        )
    if array.rank is not None:
        sizes = list(array.known(array.rank))
        sizes[axis] = None
        return Array(tuple(sizes), array.rank)
    return Array((array.axis(-1) if axis < -1 or array.path else None,), None)


def _pad(call: LibraryCall) -> Value:
    array, widths = call.array(), call.get(1, "pad_width")
    if array is None or not isinstance(widths, Sequence):
        return Array()
    last = shapes.shape_of(widths.items[-1]) if widths.items else None
    if last is None or any(
        one is None or one.constant != 0 for one in last if one is None or one.is_constant
    ):
        return Array((), None)
    return Array((array.axis(-1),), array.rank if not array.rank else None)


def _pool(call: LibraryCall) -> Value:
    array, window = call.array(0, "inputs"), call.get(1, "window_shape")
    kernel = shapes.shape_of(window) if window is not None else None
    if array is None:
        return Unknown("pooling of an unknown value")
    if kernel is None:
        return Array((array.axis(-1),), array.rank)
    strides = _strides(call.get(2, "strides"), len(kernel))
    pads = shapes.paddings(call.get(3, "padding") or Static(ex.literal("VALID")), len(kernel))
    spatial = [
        shapes.window(array.axis(i - len(kernel) - 1), k, s, pad, ex.literal(1))
        for i, (k, s, pad) in enumerate(zip(kernel, strides, pads, strict=True))
    ]
    lead = array.axis(-len(kernel) - 2)
    return Array((lead, *spatial, array.axis(-1)), array.rank or len(kernel) + 2)


def _strides(given: Value | None, count: int) -> tuple[Dim, ...]:
    if given is None or (isinstance(given, Static) and given.expr == ex.literal(None)):
        return (ex.literal(1),) * count
    sizes = shapes.shape_of(given)
    return sizes if sizes is not None and len(sizes) == count else (None,) * count


def _attention(call: LibraryCall) -> Value:
    query, value = call.array(0, "query"), call.array(2, "value")
    if query is None or value is None:
        return Unknown("attention of unknown values")
    return query.with_last(value.axis(-1))


def _random(call: LibraryCall) -> Value:
    index = {"randint": 1, "normal": 1, "uniform": 1, "bernoulli": 2}.get(
        call.symbol.split(".")[-1]
    )
    shape = call.kwargs.get("shape") or (call.get(index, "shape") if index else None)
    sizes = shapes.shape_of(shape) if shape is not None else None
    return shapes.array_of(sizes) if sizes is not None else Array()


def _glu(call: LibraryCall) -> Value:
    array = call.array(0, "x")
    last = array.axis(-1) if array else None
    half = ex.binary(last, ast.FloorDiv(), ex.literal(2)) if last else None
    return array.with_last(half) if array else Unknown("glu of an unknown value")


def _first_argument(call: LibraryCall) -> Value:
    return call.args[0] if call.args else Unknown()


_REDUCTIONS = "mean sum max min prod var std any all logsumexp amax amin argmax argmin median"
_ARRAYS: dict[str, Callable[[LibraryCall], Value]] = {
    **dict.fromkeys(_REDUCTIONS.split(), _reduce),
    "zeros": _made(0),
    "ones": _made(0),
    "empty": _made(0),
    "full": _made(0),
    "arange": _arange,
    "iota": _unknown,
    "eye": _eye,
    "concatenate": _concatenate,
    "stack": _stack,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "reshape": _reshape,
    "transpose": _transpose,
    "swapaxes": _swapaxes,
    "moveaxis": _moveaxis,
    "einsum": _einsum,
    "matmul": _matmul,
    "dot": _matmul,
    "one_hot": _one_hot,
    "take": _take,
    "split": _split,
    "array_split": _split,
    "broadcast_to": _broadcast_to,
    "tile": _tile,
    "repeat": _repeat,
    "pad": _pad,
    "max_pool": _pool,
    "avg_pool": _pool,
    "min_pool": _pool,
    "dot_product_attention": _attention,
    "glu": _glu,
    "dynamic_update_slice": lambda call: as_array(call.args[0]) or Unknown("update"),
    "dynamic_update_slice_in_dim": lambda call: as_array(call.args[0]) or Unknown("update"),
    "scan": _unknown,
}


def _partial(call: LibraryCall) -> Value:
    target = call.args[0] if call.args else Unknown()
    return Partial(target, call.args[1:], call.kwargs)


def _lifted(call: LibraryCall) -> Value:
    """``nn.remat(Cls)`` and the like: the same class, other name."""
    target = call.args[0] if call.args else Unknown()
    if isinstance(target, Class):
        return Class(target.info, "Checkpoint")
    return target if isinstance(target, Function | Factories) else Unknown("a lifted value")


def _merge_param(call: LibraryCall) -> Value:
    return Unknown("decided at the call")


_OTHERS: dict[str, Callable[[LibraryCall], Value]] = {
    "functools.partial": _partial,
    "jax.jit": _first_argument,
    "jax.checkpoint": _first_argument,
    "jax.ad_checkpoint.checkpoint_name": _first_argument,
    "jax.device_put": _first_argument,
    "jax.random.normal": _random,
    "jax.random.uniform": _random,
    "jax.random.bernoulli": _random,
    "jax.random.randint": _random,
    "flax.core.freeze": _first_argument,
    "flax.linen.remat": _lifted,
    "flax.linen.checkpoint": _lifted,
    "flax.linen.merge_param": _merge_param,
    "flax.linen.partitioning.remat": _lifted,
    "flax.linen.partitioning.with_sharding_constraint": _first_argument,
}
