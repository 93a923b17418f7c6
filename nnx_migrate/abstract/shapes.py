"""Shape arithmetic on abstract arrays: broadcasting, reshape, einsum, convolution."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable
from dataclasses import dataclass

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.slices import exceeds_one, is_one
from nnx_migrate.abstract.values import Array, Sequence, Static, Value, ending

Dim = Expr | None


def broadcast(arrays: list[Array], ones: Container[str] = ()) -> Array:
    """Shape of an elementwise operation.

    Two sizes that are neither equal nor the literal 1 are equal at run time; the one that does
    not depend on an input is kept. ``ones`` are the texts of sizes that may be 1 nevertheless.
    """
    if not arrays:
        return Array((), 0)
    if len(arrays) == 1:
        return arrays[0]
    count = max(max(len(array.tail), 1 if array.path else 0) for array in arrays)
    tail = tuple(_broadcast_axis(arrays, index, ones) for index in range(-count, 0))
    open_ranks = [array for array in arrays if array.rank is None]
    if not open_ranks:
        rank = max(array.rank or 0 for array in arrays)
        return Array(tail[max(len(tail) - rank, 0) :], rank)
    least = max(array.least if array.rank is None else array.rank for array in arrays)
    origins = {array.origin for array in open_ranks}
    deepest = open_ranks[0].least >= least or not any(array.rank for array in arrays)
    grown = origins.pop() if len(origins) == 1 and deepest else None
    return Array(tail, least=least, grown=grown)


def beside_unknown(array: Array) -> Array:
    """An array combined with an unknown value: the last size stays unless it is 1, or may be missing."""
    last = array.axis(-1)
    return Array((last if array.has(1) and not is_one(last) else None,), least=array.least)


def _broadcast_axis(arrays: list[Array], index: int, ones: Container[str]) -> Dim:
    """One axis; an array that may lack it says nothing where the others are 1.

    A time ``t`` may be a number: the last axis of ``jnp.ones((batch, 1)) * t`` is 1 then.
    """
    having = [array for array in arrays if -index <= array.depth]
    sizes = [array.axis(index) for array in having]
    candidates = [size for size in sizes if not is_one(size)]
    if candidates:
        sure = [one for one in having if one.has(-index) and not is_one(one.axis(index))]
        return _broadcast_size(candidates, ones) if sure or len(candidates) == len(sizes) else None
    unsure = [a.axis(index) for a in arrays if a.rank is None and -index > a.depth]
    if all(is_one(size) for size in unsure):
        return ex.literal(1)
    return fixed_size(unsure) if not sizes and None not in unsure else None


def _broadcast_size(sizes: list[Dim], ones: Container[str]) -> Dim:
    """Of sizes that are equal unless one of them is 1 the one that is not.

    The axis of an input may be 1 where another array's is not, and so may a part of it. Sizes that the class gives
    its own layers are taken not to be 1 unless the code says so.
    """
    first = sizes[0]
    if all(one == first for one in sizes):
        return first
    sure = [one for one in sizes if exceeds_one(one)]
    if sure:
        return fixed_size(sure)
    size = fixed_size(one for one in sizes if one is None or one.text not in ones)
    return None if size is None or _is_of_input(size) else size


def _is_of_input(size: Expr) -> bool:
    """Whether a size is that of an axis of an input, or less."""
    match size.node:
        case ast.Name(id=name):
            return ex.is_input(name) or ex.is_batch(name)
        case (
            ast.BinOp(op=ast.Sub() | ast.FloorDiv() | ast.Mod()) | ast.Call(func=ast.Name(id="min"))
        ):
            return any(ex.is_input(name) for name in size.names)
    return False


def fixed_size(sizes: Iterable[Dim]) -> Dim:
    """Of the texts for one size the first that depends on no input and no loop-carried size."""
    known = [size for size in sizes if size is not None]
    fixed = [size for size in known if not size.names]
    return next(iter(fixed or known), None)


def shared_width(arrays: list[Array]) -> int:
    """How many of the last axes all the arrays show; an input shows as many as are asked for."""
    widths = [len(array.tail) for array in arrays if not array.path]
    return max(1, min(widths or [len(array.tail) for array in arrays]))


def shape_of(value: Value) -> tuple[Dim, ...] | None:
    """Sizes of a shape tuple; None when its length is unknown."""
    if isinstance(value, Sequence):
        return tuple(item.expr if isinstance(item, Static) else None for item in value.items)
    if isinstance(value, Static):
        if isinstance(value.expr.node, ast.Tuple):
            return tuple(Expr(item) for item in value.expr.node.elts)
        if value.expr.is_constant and isinstance(value.expr.constant, int):
            return (value.expr,)
    return None


def array_from(shape: Value) -> Array | None:
    """Array of a shape of which at least the end is known: ``self.kernel_size + (features,)``."""
    sizes = shape_of(shape)
    if sizes is not None:
        return array_of(sizes)
    if isinstance(shape, Static):
        match shape.expr.node:
            case ast.BinOp(op=ast.Add(), right=ast.Tuple() | ast.List() as end):
                return ending(*map(Expr, end.elts))
    return None


def array_of(shape: tuple[Dim, ...] | None) -> Array:
    """Array of a known shape, or one of which nothing is known."""
    return Array() if shape is None else Array(shape, len(shape))


@dataclass(frozen=True)
class NewShape:
    """What an array is reshaped to.

    Attributes:
      sizes: one may be -1.
      lengths: the places of unknown sizes that are lengths of axes: ``x.shape[1]``, not half of it.
    """

    sizes: tuple[Dim, ...]
    lengths: frozenset[int] = frozenset()

    def prefix_length(self, old: tuple[Dim, ...]) -> int:
        """How many leading axes stay as they are; a length that nobody knows is taken to."""
        for index, (one, two) in enumerate(zip(old, self.sizes, strict=False)):
            if one != two or (one is None and index not in self.lengths):
                return index
        return min(len(old), len(self.sizes))


def reshape(array: Array, shape: NewShape, facts: dict[str, Expr]) -> Array:
    """``array.reshape(shape)``.

    A reshape that keeps its leading axes proves that the products of the rest are equal:
    that is noted in ``facts`` (product's key -> simpler product).
    """
    minus = [i for i, size in enumerate(shape.sizes) if _is_minus_one(size)]
    new = list(shape.sizes)
    if len(minus) == 1:
        new[minus[0]] = _remaining(array, shape, minus[0], facts)
    elif array.rank is not None and not minus:
        _note(array.last_sizes(array.rank), shape, facts)
    return Array(tuple(new), len(new))


def _is_minus_one(size: Dim) -> bool:
    return size is not None and size.is_constant and size.constant == -1


def _remaining(array: Array, shape: NewShape, hole: int, facts: dict[str, Expr]) -> Dim:
    if array.rank is None:
        return None
    old = list(array.last_sizes(array.rank))
    for size in [one for index, one in enumerate(shape.sizes) if index != hole]:
        match = next((i for i, one in enumerate(old) if one is not None and one == size), None)
        if match is not None and size is not None:
            old.pop(match)
        elif not is_one(size):
            return _divide(array.last_sizes(array.rank), shape, hole, facts)
    return simplify(old, facts)


def _divide(old: tuple[Dim, ...], shape: NewShape, hole: int, facts: dict[str, Expr]) -> Dim:
    """Last resort: the leading axes agree, the rest divides."""
    prefix = min(shape.prefix_length(old), hole)
    new = [*shape.sizes[prefix:hole], *shape.sizes[hole + 1 :]]
    top, bottom = simplify([*old[prefix:]], facts), simplify(new, facts)
    return ex.binary(top, ast.FloorDiv(), bottom) if top and bottom else None


def simplify(sizes: list[Dim], facts: dict[str, Expr]) -> Dim:
    """Product of sizes, replaced by what a reshape proved it to be."""
    if any(size is None for size in sizes):
        return None
    product = ex.product([size for size in sizes if size is not None])
    return facts.get(product.key, product)


def _note(old: tuple[Dim, ...], shape: NewShape, facts: dict[str, Expr]) -> None:
    prefix = shape.prefix_length(old)
    first, second = [*old[prefix:]], [*shape.sizes[prefix:]]
    before, after = simplify(first, facts), simplify(second, facts)
    if before and after and before.key != after.key and len(first) == 1 and len(second) > 1:
        facts[after.key] = before


def einsum(equation: str, operands: list[Array], ones: Container[str] = ()) -> Array:
    """Output of ``einsum`` from its equation; sizes of letters come from the operands, ``ones`` as above."""
    equation = equation.replace(" ", "")
    if "->" not in equation:
        return Array()
    inputs, output = equation.split("->")
    sizes: dict[str, Dim] = {}
    pairs = list(zip(inputs.split(","), operands, strict=False))
    for letters, operand in pairs:
        _read_letters(letters, operand, sizes)
    if "..." not in output:
        return array_of(tuple(sizes.get(letter) for letter in output))
    front, _, end = output.partition("...")
    hidden = [_ellipsis_axes(letters, operand) for letters, operand in pairs if "..." in letters]
    known = [one for one in hidden if one is not None]
    tail = tuple(sizes.get(letter) for letter in end)
    if not known or len(known) < len(hidden):
        return Array(tail, least=len(front) + len(end))
    batch = broadcast(known, ones)
    assert batch.rank is not None
    start = tuple(sizes.get(letter) for letter in front)
    return array_of((*start, *batch.last_sizes(batch.rank), *tail))


def _better(one: Dim, two: Dim) -> Dim:
    """Of two texts for the same size, the one that depends on no input."""
    if one is None or two is None:
        return one or two
    return two if any(ex.is_input(name) for name in one.names) else one


def _ellipsis_axes(letters: str, operand: Array) -> Array | None:
    """The axes that ``...`` stands for in one operand."""
    front, _, tail = letters.partition("...")
    if operand.rank is None or operand.rank < len(front) + len(tail):
        return None
    return array_of(operand.last_sizes(operand.rank)[len(front) : operand.rank - len(tail)])


def _read_letters(letters: str, operand: Array, sizes: dict[str, Dim]) -> None:
    _, dots, tail = letters.partition("...")
    tail = tail if dots else letters
    for index, letter in enumerate(reversed(tail), 1):
        sizes[letter] = _better(sizes.get(letter), operand.axis(-index))


def contract_last(left: Array, right: Array, ones: Container[str] = ()) -> Array:
    """``left @ right``, whose axes before the last two are broadcast; ``ones`` as there."""
    if right.rank == 1:
        return left.of(left.tail[:-1], -1)
    if right.rank == 2 and left.depth > 1:
        return left.of((left.axis(-2), right.axis(-1)))
    if left.rank == 1 and right.rank is not None:
        return Array((None, right.axis(-1))[1 - right.rank :], right.rank - 1)
    if left.rank is not None and right.rank is not None:
        batch = broadcast(
            [_without_last_two(left, left.rank), _without_last_two(right, right.rank)], ones
        )
        return Array((*batch.tail, left.axis(-2), right.axis(-1)), max(left.rank, right.rank))
    known = [max(one.least, one.rank or 0) for one in (left, right)]
    last = right.axis(-1) if right.depth > 1 else None
    return Array((left.axis(-2) if left.depth > 1 else None, last), least=min(known))


def _without_last_two(array: Array, rank: int) -> Array:
    return Array(array.last_sizes(rank)[:-2], rank - 2)


def paddings(padding: Value, count: int) -> tuple[int | str | None, ...]:
    """Padding of each spatial axis: its total, "SAME", "VALID", or None when unknown.

    Linen takes a name, one number for all sides, or per axis a number or a (low, high) pair.
    """
    if isinstance(padding, Static) and padding.expr.is_constant:
        constant = padding.expr.constant
        if isinstance(constant, str):
            return (constant.upper(),) * count  # as jax.lax reads it
        if isinstance(constant, int):
            return (2 * constant,) * count
        items: list[object] = list(constant) if isinstance(constant, tuple) else []
        return tuple(map(_both_sides, items)) if len(items) == count else (None,) * count
    if isinstance(padding, Sequence) and len(padding.items) == count:
        return tuple(_both_sides(_plain(item)) for item in padding.items)
    return (None,) * count


def _plain(value: Value) -> object:
    if isinstance(value, Static):
        return value.expr.constant if value.expr.is_constant else None
    return tuple(map(_plain, value.items)) if isinstance(value, Sequence) else None


def _both_sides(given: object) -> int | None:
    match given:
        case int():
            return 2 * given
        case (int(low), int(high)):
            return low + high
    return None


def window(size: Dim, kernel: Dim, stride: Dim, mode: int | str | None, dilation: Dim) -> Dim:
    """Output size of one spatial axis of a convolution or pooling; ``mode`` is its padding."""
    if size is None or stride is None:
        return None
    if mode in ("SAME", "SAME_LOWER"):
        negative = _negate(size)
        if is_one(stride):
            return size
        return (
            Expr(ast.UnaryOp(ast.USub(), ex.binary(negative, ast.FloorDiv(), stride).node))
            if not size.is_constant
            else _ceil(size, stride)
        )
    if kernel is None or (mode != "VALID" and not isinstance(mode, int)):
        return None
    if dilation is None:
        return None
    spread = kernel
    if not is_one(dilation):
        inner = ex.binary(kernel, ast.Sub(), ex.literal(1))
        spread = ex.binary(ex.binary(inner, ast.Mult(), dilation), ast.Add(), ex.literal(1))
    pad = mode if isinstance(mode, int) else 0
    padded = ex.binary(size, ast.Add(), ex.literal(pad))
    room = ex.binary(padded, ast.Sub(), spread)
    steps = ex.binary(room, ast.FloorDiv(), stride)
    return ex.binary(steps, ast.Add(), ex.literal(1))


def _negate(size: Expr) -> Expr:
    if isinstance(size.node, ast.UnaryOp) and isinstance(size.node.op, ast.USub):
        return Expr(size.node.operand)
    return Expr(ast.UnaryOp(ast.USub(), size.node))


def _ceil(size: Expr, stride: Expr) -> Expr:
    above = ex.binary(ex.binary(size, ast.Add(), stride), ast.Sub(), ex.literal(1))
    return ex.binary(above, ast.FloorDiv(), stride)
