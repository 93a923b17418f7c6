"""Functions that work element by element."""

from __future__ import annotations

from collections.abc import Container

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.questions import constant, is_none, is_scalar
from nnx_migrate.abstract.values import NONE, Array, Sequence, Unknown, Value
from nnx_migrate.sizes.asked_shapes import with_shape
from nnx_migrate.sizes.library.fallback import static_call
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries
from nnx_migrate.sizes.signatures import reading

_ELEMENTWISE = (
    "relu relu6 gelu silu swish elu selu celu glu_ leaky_relu sigmoid hard_sigmoid hard_swish "
    "hard_silu hard_tanh tanh softplus soft_sign log_sigmoid softmax log_softmax standardize normalize "
    "exp expm1 log log1p log2 sqrt rsqrt square abs absolute sign sin cos tan arcsin arccos arctan "
    "sinh cosh erf erf_inv floor ceil clip negative reciprocal isnan isfinite "
    "add subtract multiply divide true_divide floor_divide mod remainder power maximum minimum "
    "logical_and logical_or logical_not logical_xor equal not_equal greater greater_equal less "
    "less_equal where select stop_gradient sub mul div max_ min_ pow "
    "conj conjugate real imag angle log_cosh logaddexp identity hypot arctan2 mish squareplus "
    "optimization_barrier bitwise_and bitwise_or"
)
# By name they may be given in any number; what is no array of the result's shape is a number.
_OPERANDS = "x a x1 x2 y z m arr min max a_min a_max where mean variance on_true on_false operand"
_SETTINGS = (
    "pred dtype approximate negative_slope alpha axis epsilon out precision accuracy deg algorithm"
)
# Of these only the first argument is an array of the result's shape: shifts are others, or dtypes, names, shardings.
_OF_THE_FIRST = {
    "a shift axis": "roll",
    "a|m axis": "flip",
    "a|m k": "tril triu",
    "a|x decimals|rounding_method out": "round",
    "a|x copy nan posinf neginf": "nan_to_num",
    "a|object dtype order * copy device out_sharding ndmin! subok like": "asarray array",
    "a order subok": "copy",
    "a|x dtype * copy device": "astype",
    "a|operand new_dtype": "convert_element_type",
    "a|x name": "checkpoint_name",
    "a|x shardings": "with_sharding_constraint",
    "a|x logical_axis_resources rules mesh fallback": "with_logical_constraint",
}
_LIKE = {
    "a|prototype|x dtype shape * order subok device sharding out_sharding": (
        "zeros_like ones_like empty_like"
    ),
    "a|x fill_value dtype shape sharding * order subok device out_sharding": "full_like",
}
_SORTED = "a axis kind order * stable descending"
_ACCUMULATED = "a axis dtype out"


def _elementwise(call: LibraryCall) -> Value:
    named = (call.get(-1, name) for name in _OPERANDS.split())
    values = [*call.args, *(one for one in named if one is not None)]
    values = [*map(call.interpreter.single, values)]
    chooses = call.symbol.endswith((".where", ".select"))
    condition = call.get(0, "pred")
    if chooses and condition is None:
        condition, values = (values[0] if values else None), values[1:]
    arrays = [array for array in map(call.interpreter.array, values) if array]
    if not arrays:
        return static_call(call) if values else Unknown("no array argument")
    found = shapes.broadcast(arrays, call.interpreter.ones)
    if any(as_array(one) is None and not is_scalar(one) for one in values):
        return shapes.beside_unknown(found)
    if condition is not None:
        chooser = call.interpreter.array(condition)
        found = _select(chooser, found, call.interpreter.ones)
        arrays += [chooser] if chooser is not None else []
    call.interpreter.ranks.want(found, arrays)
    return found


def _of_the_first(call: LibraryCall) -> Value:
    """Of the shape of the first argument."""
    array, value = call.array(), call.get(0, "a")
    if array is None and isinstance(value, Sequence) and call.symbol.endswith("array"):
        return _from_lists(value)
    if array is None:
        return static_call(call) if value is not None else Unknown("no array argument")
    return array


def _like(call: LibraryCall) -> Value:
    return with_shape(call) if call.is_given(3, "shape") else _of_the_first(call)


def _along(call: LibraryCall) -> Value:
    """Of the same shape along an axis, else flattened: ``sort`` has the last one by default."""
    array, axis = call.array(), call.get(1, "axis")
    if array is None:
        return _of_the_first(call)
    default = NONE if call.symbol.endswith(("cumsum", "cumprod")) else constant(-1)
    is_flat = is_none(default if axis is None else axis)
    if is_flat is None:
        return Unknown("along an axis that may be None")
    if not is_flat:
        return array
    call.want_rank(array)
    sizes = [] if array.rank is None else array.last_sizes(array.rank)
    known = [size for size in sizes if size is not None]
    is_known = array.rank is not None and len(known) == array.rank
    return Array((ex.product(known) if is_known else None,), 1)


def _select(condition: Array | None, branches: Array, ones: Container[str]) -> Array:
    """What ``where`` chooses from, broadcast to its condition: an axis of 1 may become longer.

    Of two last axes that nobody knows to be longer than 1 the longer one is what is left.
    """
    if condition is None:
        return shapes.beside_unknown(branches)
    both, last, other = (
        shapes.broadcast([condition, branches], ones),
        branches.axis(-1),
        condition.axis(-1),
    )
    if both.axis(-1) is None and last is not None and other is not None and condition.has(1):
        return both.with_last(ex.greatest(last, other))
    return both


def _from_lists(value: Value) -> Array:
    """``jnp.array([[1, 2]])`` has the lengths of its lists, and the axes of the arrays in them."""
    sizes: list[Dim] = []
    while isinstance(value, Sequence) and value.items:
        sizes.append(ex.literal(len(value.items)))
        value = value.items[0]
    if isinstance(value, Sequence) or is_scalar(value):
        return Array(tuple(sizes), len(sizes))
    inner = as_array(value)
    if inner is None or inner.rank is None:
        return Array(inner.last_sizes(1) if inner and inner.has(1) else (), least=len(sizes))
    return Array((*sizes, *inner.last_sizes(inner.rank)), len(sizes) + inner.rank)


_SIMPLE = reading(f"*operands {_OPERANDS} {_SETTINGS}", _elementwise)
ARRAYS: Summaries = {
    **dict.fromkeys(_ELEMENTWISE.split(), _SIMPLE),
    **{n: reading(w, _of_the_first) for w, names in _OF_THE_FIRST.items() for n in names.split()},
    **{n: reading(words, _like) for words, names in _LIKE.items() for n in names.split()},
    **dict.fromkeys(("sort", "argsort"), reading(_SORTED, _along)),
    **dict.fromkeys(("cumsum", "cumprod"), reading(_ACCUMULATED, _along)),
}
# where jax.lax has another function by the name
LAX: Summaries = {
    "max": _SIMPLE,
    "min": _SIMPLE,
    "sort": reading("a|operand dimension is_stable num_keys", _of_the_first),
    "cumsum": reading("a|operand axis reverse", _of_the_first),
    "cumprod": reading("a|operand axis reverse", _of_the_first),
}
