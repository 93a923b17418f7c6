"""Functions of several arrays that are neither elementwise nor products over an axis."""

from __future__ import annotations

import ast

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.questions import is_none
from nnx_migrate.abstract.values import Array, Sequence, Unknown, Value
from nnx_migrate.sizes.library_call import Dim, LibraryCall, Summaries
from nnx_migrate.sizes.signatures import reading


def _promote_dtype(call: LibraryCall) -> Value:
    """``promote_dtype(*args)``: a list of the same arrays, None where None was given."""
    items = [one if is_none(one) else as_array(one) or one for one in call.args]
    return Sequence(tuple(items), is_list=True)


def _kron(call: LibraryCall) -> Value:
    """``kron(a, b)``: sizes multiply, axis by axis from the last."""
    one, two = call.array(0), call.array(1, "b")
    if one is None or two is None or one.rank is None or one.rank != two.rank:
        return Unknown("kron of arrays of unknown or different rank")
    pairs = zip(one.last_sizes(one.rank), two.last_sizes(one.rank), strict=True)
    sizes: list[Dim] = [a and b and ex.binary(a, ast.Mult(), b) for a, b in pairs]
    return Array(tuple(sizes), one.rank)


def _outer(call: LibraryCall) -> Value:
    """``outer(a, b)`` of two vectors."""
    one, two = call.array(0), call.array(1, "b")
    if one is None or two is None or one.rank != 1 or two.rank != 1:
        return Unknown("outer of arrays that may have more than one axis")
    return Array((one.axis(-1), two.axis(-1)), 2)


def _categorical(call: LibraryCall) -> Value:
    """``jax.random.categorical(key, logits, axis)``: without the axis of the categories."""
    logits, axis = call.array(1, "logits"), call.number(2, "axis", -1)
    if logits is None or axis != -1:
        return Unknown("categorical with a shape or axis of its own")
    rank = None if logits.rank is None else logits.rank - 1
    width = rank if rank is not None else max(1, len(logits.tail) - 1)
    return Array(logits.last_sizes(width + 1)[:-1], rank)


def _normalize(call: LibraryCall) -> Value:
    """``flax.linen.normalization._normalize(module, x, mean, var, ...)``: of the shape of ``x``."""
    return call.array(1, "x") or Unknown("what is normalized is unknown")


def _attribute(call: LibraryCall) -> Value:
    """``jnp.shape(x)`` and ``jnp.ndim(x)`` as the attributes of that name."""
    array = call.array()
    name = call.symbol.rpartition(".")[2]
    known = array is not None and len(call.args) == 1 and not call.kwargs
    if array is None or not known:
        return Unknown(f"{name} of an unknown value")
    return call.interpreter.attribute(array, name, call.frame)


ARRAYS: Summaries = {
    "kron": reading("a b", _kron),
    "ndim": _attribute,
    "outer": reading("a|x1 b|x2 out", _outer),
    "shape": _attribute,
}
SYMBOLS: Summaries = {
    "flax.linen._normalize": _normalize,
    "flax.linen.dtypes.promote_dtype": _promote_dtype,
    "flax.linen.promote_dtype": _promote_dtype,
    "jax.random.categorical": reading(
        "key logits axis shape! replace mode * out_sharding", _categorical
    ),
}
