"""Shapes of einops: what a pattern does to the last axes."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Mapping

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.questions import constant_of
from nnx_migrate.abstract.values import Array, Static, Unknown, Value, ending
from nnx_migrate.sizes.library_call import LibraryCall

Dim = Expr | None
_TOKEN = re.compile(r"\(([^)]*)\)|(\S+)")


def _sides(call: LibraryCall) -> tuple[list[list[str]], list[list[str]]] | None:
    """Both sides of the pattern, one list of axis names per axis."""
    text = constant_of(call.get(1, "pattern"))
    if not isinstance(text, str) or text.count("->") != 1:
        return None
    left, right = text.split("->")
    return _axes(left), _axes(right)


def _axes(side: str) -> list[list[str]]:
    return [
        one.group(2).split() if one.group(1) is None else one.group(1).split()
        for one in _TOKEN.finditer(side)
    ]


def _sizes(call: LibraryCall, array: Array, left: list[list[str]]) -> dict[str, Dim]:
    """The size of every named axis, as far as the array and the keywords tell."""
    known: dict[str, Dim] = {
        name: value.expr for name, value in call.kwargs.items() if isinstance(value, Static)
    }
    names = [axis[0] if axis else "" for axis in left]
    dots = names.index("...") if "..." in names else -1
    whole = Array(array.tail, len(left), array.path) if dots < 0 else array
    for place, axis in enumerate(left):
        index = place - len(left)
        size = whole.axis(index) if place > dots else None
        unknown = [name for name in axis if name not in known and not name.isdigit()]
        if len(unknown) != 1 or unknown[0] == "...":
            continue
        others = [_size(name, known) for name in axis if name != unknown[0]]
        if size is not None and all(others):
            product = ex.product([one for one in others if one])
            size = size if len(axis) == 1 else ex.binary(size, ast.FloorDiv(), product)
            known[unknown[0]] = size
    return known


def _size(name: str, axis_sizes: Mapping[str, Dim]) -> Dim:
    return ex.literal(int(name)) if name.isdigit() else axis_sizes.get(name)


def _output(call: LibraryCall) -> Value:
    array, sides = call.array(0, "tensor"), _sides(call)
    if array is None or sides is None:
        return Unknown(f"{call.symbol} of unknown values")
    left, right = sides
    dots = ["..."] in left
    call.interpreter.prove(
        array, least=len(left) - 1 if dots else 0, exact=None if dots else len(left)
    )
    known = _sizes(call, array, left)
    places = {name: index for index, axis in enumerate(left) for name in axis}
    tail: list[Dim] = []
    for axis in right:
        if axis == ["..."]:
            tail = []
            continue
        sizes = [_size(name, known) for name in axis]
        whole = [places.get(name) for name in axis]
        if _is_whole(left, axis, whole):
            ellipsis_array = (
                Array(array.tail, len(left), array.path) if "..." not in places else array
            )
            index = whole[0]
            tail.append(ellipsis_array.axis(index - len(left)) if index is not None else None)
        else:
            tail.append(ex.product([s for s in sizes if s]) if all(sizes) else None)
    return ending(*tail) if ["..."] in right else Array(tuple(tail), len(right))


def _is_whole(left: list[list[str]], axis: list[str], whole: list[int | None]) -> bool:
    """Whether an output axis is one input axis as it was."""
    return len(axis) > 0 and whole[0] is not None and left[whole[0]] == axis


def _einsum(call: LibraryCall) -> Value:
    """``einops.einsum(*tensors, pattern)``: axis names of several letters, apart by blanks."""
    pattern = constant_of(call.args[-1]) if call.args else None
    if not isinstance(pattern, str) or pattern.count("->") != 1:
        return Unknown("einsum of an unknown pattern")
    left, right = pattern.split("->")
    names = list(dict.fromkeys(re.findall(r"[^\W\d]\w*", pattern)))
    letters = dict(zip(names, _LETTERS, strict=False))
    if len(letters) != len(names) or re.search(r"[()\d]", pattern):
        return Unknown("einsum of a pattern with groups")

    def spelled(side: str) -> str:
        return "".join(letters.get(one, one) for one in side.split())

    inputs = ",".join(spelled(one) for one in left.split(","))
    operands = [call.interpreter.array(one) or Array() for one in call.args[:-1]]
    return shapes.einsum(f"{inputs}->{spelled(right)}", operands)


_LETTERS = string.ascii_letters
SUMMARIES: dict[str, Callable[[LibraryCall], Value]] = {
    "einops.rearrange": _output,
    "einops.repeat": _output,
    "einops.reduce": _output,
    "einops.einops.rearrange": _output,
    "einops.einsum": _einsum,
}
