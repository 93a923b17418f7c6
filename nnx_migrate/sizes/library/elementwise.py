"""Functions that work element by element."""

from __future__ import annotations

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.values import Array, Sequence, Unknown, Value, as_array, is_scalar
from nnx_migrate.sizes.library.fallback import static_call
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries

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

# of their arguments only the first is an array of the result's shape: shifts are others
_OF_THE_FIRST = frozenset(  # or dtypes, names, shardings
    "roll flip cumsum cumprod sort argsort tril triu round nan_to_num asarray array copy astype "  # noqa: SIM905
    "zeros_like ones_like full_like empty_like convert_element_type checkpoint_name "
    "with_sharding_constraint with_logical_constraint".split()
)


def _elementwise(call: LibraryCall) -> Value:
    values = [*call.args, *(v for k, v in call.kwargs.items() if k in ("x", "a", "x1", "x2", "y"))]
    chooses = call.symbol.endswith((".where", ".select"))
    condition, values = (values[:1], values[1:]) if chooses else ([], values)
    values = values[:1] if call.symbol.rpartition(".")[2] in _OF_THE_FIRST else values
    arrays = [array for array in map(call.interpreter.array, values) if array]
    if not arrays:
        sequences = [v for v in values if isinstance(v, Sequence)]
        if call.symbol.endswith((".array", ".asarray")) and sequences:
            return _nested(sequences[0])
        return static_call(call) if values else Unknown("no array argument")
    found = shapes.broadcast(arrays)
    if any(as_array(one) is None and not is_scalar(one) for one in values):
        return shapes.beside_unknown(found)
    if condition:
        found = _chosen(call.interpreter.array(condition[0]), found)
    call.interpreter.ranks.want(found, arrays)
    return found


def _chosen(condition: Array | None, found: Array) -> Array:
    """What ``where`` chooses from, broadcast to its condition: an axis of 1 may become longer."""
    if not any(shapes.is_one(size) for size in found.tail):
        return found
    return shapes.broadcast([condition, found]) if condition else shapes.beside_unknown(found)


def _nested(value: Value) -> Array:
    """``jnp.array([[1, 2]])`` has the lengths of its lists, and the axes of the arrays in them."""
    sizes: list[Dim] = []
    while isinstance(value, Sequence) and value.items:
        sizes.append(ex.literal(len(value.items)))
        value = value.items[0]
    if isinstance(value, Sequence) or is_scalar(value):
        return Array(tuple(sizes), len(sizes))
    inner = as_array(value)
    if inner is None or inner.rank is None:
        return Array(inner.known(1) if inner and inner.has(1) else (), least=len(sizes))
    return Array((*sizes, *inner.known(inner.rank)), len(sizes) + inner.rank)


ARRAYS: Summaries = dict.fromkeys(_ELEMENTWISE, _elementwise)
