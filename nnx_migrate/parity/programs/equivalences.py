"""The published StableHLO equivalences that preserve bits, and nothing else.

Each entry of ``RULES`` is one equivalence, with a test that runs both forms and compares bits.
``DATAFLOW`` is the comparison itself: programs are compared as graphs of values, so the order of
independent operations, results that nobody uses, and the same value computed twice do not count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

from nnx_migrate.parity.programs.terms import Attributes, Rule, TensorType, Term, Terms

DATAFLOW = "dataflow"
PRIVATE_FUNCTIONS = "private_functions"
LOOP_CARRIES = "loop_carries"

_INT = re.compile(r"-?\d+")
_COMMUTATIVE = frozenset(
    f"stablehlo.{name}" for name in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
)
_RESHAPE = "stablehlo.reshape"
_BROADCAST = "stablehlo.broadcast_in_dim"
_TRANSPOSE = "stablehlo.transpose"
_CONSTANT = "stablehlo.constant"
_REDUCE = "stablehlo.reduce"
_BARRIER = "stablehlo.optimization_barrier"


def _integers(text: str | None) -> tuple[int, ...]:
    """Read ``array<i64: 0, 1>``; an empty one is ``array<i64>``."""
    return tuple(map(int, _INT.findall((text or "").partition(":")[2])))


def _shape(terms: Terms, number: int) -> tuple[int, ...]:
    shape = terms[number].type.shape
    if shape is None:
        raise ValueError(f"{terms[number].op}: expected a ranked tensor")
    return shape


def _reshape(operand: int, to: tuple[int, ...], element: str) -> Term:
    return Term(_RESHAPE, (), (operand,), TensorType(to, element))


def reshape_identity(terms: Terms, term: Term) -> int | Term | None:
    """A reshape to the same shape is its operand; a reshape of a reshape is one reshape."""
    (operand,) = term.operands
    if terms[operand].type == term.type:
        return operand
    if terms[operand].op == _RESHAPE:
        return Term(_RESHAPE, term.attributes, terms[operand].operands, term.type)
    return None


def splat_constant(terms: Terms, term: Term) -> int | Term | None:
    """A broadcast or reshape of a constant with one repeated value is such a constant."""
    source = terms[term.operands[0]]
    if source.op != _CONSTANT or source.attribute("splat") is None:
        return None
    return Term(_CONSTANT, source.attributes, (), term.type)


def broadcast_of_units(terms: Terms, term: Term) -> int | Term | None:
    """A broadcast ignores its operand's axes of size 1: it may as well not have them."""
    (operand,) = term.operands
    shape, dims = _shape(terms, operand), _integers(term.attribute("broadcast_dimensions"))
    if 1 not in shape or math.prod(shape) == math.prod(term.type.shape or ()):
        return None
    other_axes = [(size, dim) for size, dim in zip(shape, dims, strict=True) if size != 1]
    source = terms.make(
        _reshape(operand, tuple(size for size, _ in other_axes), terms[operand].type.element)
    )
    return Term(_BROADCAST, _dimensions(dim for _, dim in other_axes), (source,), term.type)


def broadcast_as_reshape(terms: Terms, term: Term) -> int | Term | None:
    """A broadcast that only adds axes of size 1 is a reshape."""
    (operand,) = term.operands
    shape, target = _shape(terms, operand), term.type.shape or ()
    dims = _integers(term.attribute("broadcast_dimensions"))
    if math.prod(shape) != math.prod(target) or 0 in target:
        return None
    # Axes of size 1 may stand in any order; the others must keep theirs.
    order = [dim for size, dim in zip(shape, dims, strict=True) if size != 1]
    return _reshape(operand, target, term.type.element) if order == sorted(order) else None


def broadcast_of_broadcast(terms: Terms, term: Term) -> int | Term | None:
    """A broadcast of a broadcast is one broadcast."""
    source = terms[term.operands[0]]
    if source.op != _BROADCAST:
        return None
    outer = _integers(term.attribute("broadcast_dimensions"))
    inner = _integers(source.attribute("broadcast_dimensions"))
    return Term(_BROADCAST, _dimensions(outer[dim] for dim in inner), source.operands, term.type)


def _dimensions(dims: object) -> Attributes:
    numbers = ", ".join(map(str, dims))  # type: ignore[call-overload]
    return (("broadcast_dimensions", f"array<i64: {numbers}>" if numbers else "array<i64>"),)


def transpose_identity(terms: Terms, term: Term) -> int | Term | None:
    """A transpose that moves nothing is its operand; one that moves only unit axes a reshape."""
    (operand,) = term.operands
    order = _integers(term.attribute("permutation"))
    if order == tuple(range(len(order))):
        return operand
    shape = _shape(terms, operand)
    order_of_others = [axis for axis in order if shape[axis] != 1]
    if order_of_others == sorted(order_of_others):
        return _reshape(operand, term.type.shape or (), term.type.element)
    return None


def transpose_of_transpose(terms: Terms, term: Term) -> int | Term | None:
    """A transpose of a transpose is one transpose."""
    source = terms[term.operands[0]]
    if source.op != _TRANSPOSE:
        return None
    outer = _integers(term.attribute("permutation"))
    inner = _integers(source.attribute("permutation"))
    order = ", ".join(str(inner[axis]) for axis in outer)
    attributes = (("permutation", f"array<i64: {order}>"),)
    return Term(_TRANSPOSE, attributes, source.operands, term.type)


def convert_identity(terms: Terms, term: Term) -> int | Term | None:
    """A conversion to the type a value already has is that value."""
    (operand,) = term.operands
    return operand if terms[operand].type == term.type else None


def reduce_unit_axes(terms: Terms, term: Term) -> int | Term | None:
    """A sum does not see axes of size 1: summing over one is a reshape.

    (XLA reads ``x + 0`` over a single element as ``x``, the sign of a zero included.)
    """
    if len(term.operands) != 3 or not _sums_from_zero(terms, term):
        return None
    operand, initial, body = term.operands
    shape = _shape(terms, operand)
    axes = _integers(term.attribute("dimensions"))
    if 1 not in shape:
        return None
    other_axes = [axis for axis, size in enumerate(shape) if size != 1]
    source = terms.make(
        _reshape(operand, tuple(shape[axis] for axis in other_axes), terms[operand].type.element)
    )
    target = term.type
    left = [place for place, axis in enumerate(other_axes) if axis in axes]
    if not left:
        return _reshape(source, target.shape or (), target.element)
    numbers = ", ".join(map(str, left))
    rest = tuple(shape[axis] for axis in other_axes if axis not in axes)
    inner = terms.make(
        Term(
            _REDUCE,
            (("dimensions", f"array<i64: {numbers}>"),),
            (source, initial, body),
            TensorType(rest, target.element),
        )
    )
    return _reshape(inner, target.shape or (), target.element)


def _sums_from_zero(terms: Terms, term: Term) -> bool:
    _, initial, body = term.operands
    region, start = terms[body], terms[initial]
    if region.op != "region" or len(region.operands) != 1 or start.op != _CONSTANT:
        return False
    inside = terms[region.operands[0]]
    # Those of the region itself: it may use values of what is around it, too.
    own = ("depth", region.attribute("depth"))
    arguments = sorted(
        terms[number].index
        for number in inside.operands
        if terms[number].op == "argument" and own in terms[number].attributes
    )
    zero = (start.attribute("splat") or "") in ("0.000000e+00", "0")
    return inside.op == "stablehlo.add" and arguments == [0, 1] and zero


def commuted_operands(terms: Terms, term: Term) -> int | Term | None:
    """``a + b`` is ``b + a``; likewise products, extrema and bitwise operations."""
    if term.operands[0] <= term.operands[1]:
        return None
    return Term(term.op, term.attributes, term.operands[::-1], term.type, term.index)


def barrier_operands(terms: Terms, term: Term) -> int | Term | None:
    """A barrier hands each operand on; in which order it takes them does not matter."""
    own = term.operands[term.index]
    others = tuple(sorted(set(term.operands)))
    return Term("barrier", term.attributes, (own, *others), term.type)


def without_mark(terms: Terms, term: Term) -> int | Term | None:
    """A constraint or barrier has its operand's value. No equivalence: it says where and when."""
    return term.operands[term.index]


def without_precision(terms: Terms, term: Term) -> int | Term | None:
    """A product at any precision. No equivalence: only the numbers of a CPU are the same."""
    left = tuple(one for one in term.attributes if one[0] not in ("precision_config", "algorithm"))
    return None if left == term.attributes else replace(term, attributes=left)


def _on(*ops: str, apply: Callable[[Terms, Term], int | Term | None]) -> Rule:
    return Rule(frozenset(ops), apply)


RULES: dict[str, Rule] = {
    "reshape_identity": _on(_RESHAPE, apply=reshape_identity),
    "splat_constant": _on(_RESHAPE, _BROADCAST, apply=splat_constant),
    "broadcast_as_reshape": _on(_BROADCAST, apply=broadcast_as_reshape),
    "broadcast_of_broadcast": _on(_BROADCAST, apply=broadcast_of_broadcast),
    "broadcast_of_units": _on(_BROADCAST, apply=broadcast_of_units),
    "transpose_identity": _on(_TRANSPOSE, apply=transpose_identity),
    "transpose_of_transpose": _on(_TRANSPOSE, apply=transpose_of_transpose),
    "convert_identity": _on("stablehlo.convert", apply=convert_identity),
    "reduce_unit_axes": _on(_REDUCE, apply=reduce_unit_axes),
    "commuted_operands": _on(*_COMMUTATIVE, apply=commuted_operands),
    "barrier_operands": _on(_BARRIER, apply=barrier_operands),
}
STRUCTURAL = (PRIVATE_FUNCTIONS, LOOP_CARRIES)
# No equivalences: constraints and barriers say where and when, a precision how.
WITHOUT_MARKS = {"marks": _on("sdy.sharding_constraint", _BARRIER, apply=without_mark)}
WITHOUT_PRECISIONS = {
    **WITHOUT_MARKS,
    "precisions": _on("stablehlo.dot_general", "stablehlo.convolution", apply=without_precision),
}
