"""Shapes of library calls that the project's pyproject.toml declares (``source/declared.py``)."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Array, Sequence, Static, Unknown, Value, as_array, ending
from nnx_migrate.sizes.library_call import Dim, LibraryCall
from nnx_migrate.source.declared import Axes, Parameter, Signature


def call_declared(signature: Signature, call: LibraryCall) -> Value:
    """What a declared function returns; unknown when the call does not fit the declaration."""
    given = _bind(signature, call)
    if isinstance(given, str):
        return Unknown(f"{call.symbol} is called with {given} than pyproject.toml declares")
    sizes: dict[str, Dim] = {}
    leading: list[Array] = []
    for parameter in signature.parameters:
        value = given.get(parameter.name)
        if value is None:
            continue
        if not _read(parameter, value, sizes, leading):
            return Unknown(f"{call.symbol}: {parameter.name} has another rank than declared")
    results = [_result(one, given, sizes, leading) for one in signature.results]
    return Sequence(tuple(results)) if signature.is_tuple else results[0]


def _bind(signature: Signature, call: LibraryCall) -> dict[str, Value] | str:
    """Arguments by parameter; what is wrong when they are others than declared."""
    names = [one.name for one in signature.parameters]
    extra = len(call.args) > len(names) or not call.kwargs.keys() <= set(names)
    if extra and not signature.is_open:
        return "other arguments"
    if any(isinstance(one, ast.Starred) for one in call.node.args):
        return "less certain arguments"
    return {**dict(zip(names, call.args, strict=False)), **call.kwargs}


def _read(parameter: Parameter, value: Value, sizes: dict[str, Dim], leading: list[Array]) -> bool:
    """Note the sizes that an argument shows; False when its rank is not the declared one."""
    if parameter.axes is None:
        if isinstance(value, Static):
            sizes.setdefault(parameter.name, value.expr)
        return True
    array, count = as_array(value), len(parameter.axes.sizes)
    if array is None:
        return True
    if array.rank is not None and (
        array.rank < count or (array.rank != count and not parameter.axes.leading)
    ):
        return False
    if parameter.axes.leading:
        leading.append(Array((), None if array.rank is None else array.rank - count))
    for node, size in zip(parameter.axes.sizes, array.known(count) if count else (), strict=True):
        if isinstance(node, ast.Name):
            sizes[node.id] = shapes.agreed((sizes.get(node.id), size))
    return True


def _result(
    result: Axes | str,
    given: Mapping[str, Value],
    sizes: Mapping[str, Dim],
    leading: list[Array],
) -> Value:
    if isinstance(result, str):
        array = as_array(given[result]) if result in given else None
        return array or Unknown(f"{result} is no array here")
    tail = tuple(_size(node, sizes) for node in result.sizes)
    if not result.leading:
        return Array(tail, len(tail))
    ranks = [one.rank for one in leading if one.rank is not None]
    if ranks and len(ranks) == len(leading):
        return Array(tail, max(ranks) + len(tail))
    return ending(*tail)


def _size(node: ast.expr, sizes: Mapping[str, Dim]) -> Dim:
    """A declared axis over the sizes seen; None when one of them is unknown."""
    match node:
        case ast.Name(id=name):
            return sizes.get(name)
        case ast.BinOp(left=left, op=sign, right=right):
            one, two = _size(left, sizes), _size(right, sizes)
            return ex.binary(one, sign, two) if one is not None and two is not None else None
        case _:
            return Expr(node)
