"""Products, attention and pooling."""

from __future__ import annotations

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.values import Array, Static, Unknown, Value, ending
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries
from nnx_migrate.sizes.signatures import reading


def _einsum(call: LibraryCall) -> Value:
    equation = call.args[0] if call.args else Unknown()
    if not (isinstance(equation, Static) and equation.expr.is_constant):
        return Unknown("einsum equation unknown")
    operands = [call.interpreter.array(one) or Array() for one in call.args[1:]]
    inputs = str(equation.expr.constant).replace(" ", "").partition("->")[0].split(",")
    for letters, operand in zip(inputs, operands, strict=False):
        if "..." in letters:
            call.interpreter.prove(operand, least=len(letters) - 3)
        else:
            call.interpreter.prove(operand, exact=len(letters))
    return shapes.einsum(str(equation.expr.constant), operands, call.interpreter.ones)


def _matmul(call: LibraryCall) -> Value:
    one, two = call.array(0), call.array(1, "b")
    if one is None or two is None:
        return Unknown("matmul of unknown values")
    return shapes.contract_last(one, two, call.interpreter.ones)


def _dot(call: LibraryCall) -> Value:
    """``dot(a, b)``: as ``a @ b`` unless ``b`` has batch axes, which follow those of ``a``."""
    one, two = call.array(0), call.array(1, "b")
    if one is None or two is None:
        return Unknown("dot of unknown values")
    if two.rank in (1, 2):
        return shapes.contract_last(one, two)
    call.want_rank(two)
    return ending(two.axis(-1)) if two.has(2) else Unknown("dot with an array of unknown rank")


def _attention(call: LibraryCall) -> Value:
    query, value = call.array(0, "query"), call.array(2, "value")
    if query is None or value is None:
        return Unknown("attention of unknown values")
    return query.with_last(value.axis(-1))


def _attention_weights(call: LibraryCall) -> Value:
    """Weights of shape ``(batch..., heads, queries, keys)`` from ``(batch..., length, heads, depth)``."""
    query, key = call.array(0, "query"), call.array(1, "key")
    if query is None:
        return Unknown("attention of an unknown query")
    heads = query.axis(-2) if query.has(3) else None
    lengths = [one.axis(-3) if one is not None and one.has(3) else None for one in (query, key)]
    return query.of((heads, *lengths))


def _pool(call: LibraryCall) -> Value:
    array, window = call.array(0, "inputs"), call.get(1, "window_shape")
    kernel = shapes.shape_of(window) if window is not None else None
    if array is None:
        return Unknown("pooling of an unknown value")
    if kernel is None:
        return array.of((array.axis(-1),))
    if array.rank is not None and array.rank < len(kernel) + 2:
        # Behind a convolution of fewer axes, which was taken to be given one batch axis: it has several.
        return Array((array.axis(-1),))
    strides = _strides(call.get(2, "strides"), len(kernel))
    pads = shapes.paddings(call.get(3, "padding") or Static(ex.literal("VALID")), len(kernel))
    spatial = [
        shapes.window(array.axis(i - len(kernel) - 1), k, s, pad, ex.literal(1))
        for i, (k, s, pad) in enumerate(zip(kernel, strides, pads, strict=True))
    ]
    call.interpreter.prove(array, usual=len(kernel) + 2)
    return array.over_windows(tuple(spatial), array.axis(-1))


def _strides(strides: Value | None, count: int) -> tuple[Dim, ...]:
    if strides is None or (isinstance(strides, Static) and strides.expr == ex.literal(None)):
        return (ex.literal(1),) * count
    sizes = shapes.shape_of(strides)
    return sizes if sizes is not None and len(sizes) == count else (None,) * count


_PRODUCT = "a|lhs|x1 b|rhs|x2 * precision preferred_element_type out_sharding dimension_numbers!"
_POOL = "inputs window_shape strides padding count_include_pad"
_ATTENTION = (
    "query key value bias mask broadcast_dropout dropout_rng dropout_rate deterministic dtype "
    "precision module force_fp32_for_softmax * scale is_causal query_seq_lengths "
    "key_value_seq_lengths local_window_size implementation return_residual!"
)
_ATTENTION_WEIGHTS = (
    "query key bias mask broadcast_dropout dropout_rng dropout_rate deterministic dtype "
    "precision module force_fp32_for_softmax einsum_dot_general einsum"
)
ARRAYS: Summaries = {
    "einsum": reading("*operands optimize precision preferred_element_type out_sharding", _einsum),
    "matmul": reading(_PRODUCT, _matmul),
    "dot": reading(_PRODUCT, _dot),
    "max_pool": reading(_POOL, _pool),
    "avg_pool": reading(_POOL, _pool),
    "min_pool": reading(_POOL, _pool),
    "dot_product_attention": reading(_ATTENTION, _attention),
    "dot_product_attention_weights": reading(_ATTENTION_WEIGHTS, _attention_weights),
}
