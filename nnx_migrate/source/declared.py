"""What a project's pyproject.toml says about the shapes of functions of other libraries.

::

    [tool.nnx-migrate.shapes]
    "mylib.rotate" = "(x) -> x"
    "mylib.pool" = "(x[..., h, w, c], window) -> [..., h // window, w // window, c]"
    "mylib.split" = "(x[..., d], *) -> ([..., d // 2], [..., d // 2])"

A signature names the parameters in order, as the function does; ``[...]`` after one names the axes
of an array (``...`` any number of leading ones), and a closing ``*`` says that others may follow. The
result is a parameter (the same shape), axes, or a tuple of results. An axis is a number, a name
that the signature binds, or arithmetic over them.
"""

from __future__ import annotations

import ast
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nnx_migrate.source.walking import walk


class DeclarationError(ValueError):
    """A declared shape cannot be read; the text says what was expected."""


@dataclass(frozen=True)
class Axes:
    """The axes of an array: the last ones, one expression each, and whether others lead."""

    sizes: tuple[ast.expr, ...]
    leading: bool


@dataclass(frozen=True)
class Parameter:
    """One parameter; ``axes`` is None when the signature does not name any."""

    name: str
    axes: Axes | None = None


@dataclass(frozen=True)
class Signature:
    """A declared function: parameters in order, and the results as axes or parameter names."""

    parameters: tuple[Parameter, ...]
    results: tuple[Axes | str, ...]
    is_tuple: bool
    is_open: bool  # other arguments may follow


def declared_shapes(settings: Mapping[str, Any]) -> dict[str, Signature]:
    """The signatures in the table ``[tool.nnx-migrate.shapes]``, by symbol.

    Raises:
        DeclarationError: an entry is not a symbol with a signature.
    """
    found: dict[str, Signature] = {}
    for symbol, text in settings.items():
        if not all(part.isidentifier() for part in symbol.split(".")) or "." not in symbol:
            raise DeclarationError(
                f'"{symbol}": expected the full name of a function, as in "mylib.rotate"'
            )
        if not isinstance(text, str):
            raise DeclarationError(f'"{symbol}": expected a text such as "(x) -> x"')
        try:
            found[symbol] = signature_of(text)
        except DeclarationError as error:
            raise DeclarationError(f'"{symbol}": {error}') from None
    return found


def signature_of(text: str) -> Signature:
    """Read one signature.

    Raises:
        DeclarationError: it cannot be read, or a result uses a name that nothing binds.
    """
    left, arrow, right = text.partition("->")
    if not arrow or not left.strip().startswith("(") or not left.strip().endswith(")"):
        raise DeclarationError(f'expected "(parameters) -> result", found {reprlib.repr(text)}')
    inner = left.strip()[1:-1].rstrip().removesuffix(",").rstrip()
    is_open = inner.endswith("*")
    inner = inner.removesuffix("*").rstrip().removesuffix(",")
    nodes = _items(inner) if inner.strip() else []
    parameters = tuple(_parameter(node) for node in nodes)
    names = [one.name for one in parameters]
    if len(set(names)) != len(names):
        raise DeclarationError(f"a parameter is named twice in {reprlib.repr(left.strip())}")
    result = _parsed(right.strip())
    is_tuple = isinstance(result, ast.Tuple)
    results = result.elts if isinstance(result, ast.Tuple) else [result]
    signature = Signature(parameters, tuple(map(_result, results)), is_tuple, is_open)
    _check_bound(signature)
    return signature


def _items(text: str) -> list[ast.expr]:
    node = _parsed(f"({text},)")
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError):
        raise DeclarationError(f"cannot read {reprlib.repr(text)}") from None


def _parameter(node: ast.expr) -> Parameter:
    match node:
        case ast.Name(id=name):
            return Parameter(name)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=elements)):
            return Parameter(name, _axes(elements))
        case ast.Subscript(value=ast.Name(id=name), slice=element):
            return Parameter(name, _axes([element]))
    raise DeclarationError(f"expected a parameter, `x` or `x[..., d]`, found `{ast.unparse(node)}`")


def _result(node: ast.expr) -> Axes | str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.List(elts=elements):
            return _axes(elements)
    raise DeclarationError(
        f"expected a result, a parameter's name or axes in [...], found `{ast.unparse(node)}`"
    )


def _axes(elements: list[ast.expr]) -> Axes:
    leading = bool(elements) and _is_dots(elements[0])
    sizes = tuple(elements[1:] if leading else elements)
    for size in sizes:
        _check_size(size)
    return Axes(sizes, leading)


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _check_size(node: ast.expr) -> None:
    match node:
        case ast.Name():
            return
        case ast.Constant(value=int(value)) if not isinstance(value, bool) and value >= 0:
            return
        case ast.BinOp(
            left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right=right
        ):
            _check_size(left)
            _check_size(right)
            return
    raise DeclarationError(
        f"expected an axis (a number, a name, or + - * // of them; `...` first), "
        f"found `{ast.unparse(node)}`"
    )


def _check_bound(signature: Signature) -> None:
    """Every name of a result is a parameter or an axis that some parameter names plainly."""
    parameters = {one.name for one in signature.parameters}
    axes = {
        size.id
        for one in signature.parameters
        if one.axes is not None
        for size in one.axes.sizes
        if isinstance(size, ast.Name)
    }
    dotted = sum(one.axes is not None and one.axes.leading for one in signature.parameters)
    for result in signature.results:
        if isinstance(result, str):
            if result not in parameters:
                raise DeclarationError(f"the result `{result}` is no parameter")
            continue
        if result.leading and not dotted:
            raise DeclarationError("the result has `...`, which no parameter has")
        used = {n.id for size in result.sizes for n in walk(size) if isinstance(n, ast.Name)}
        if unknown := sorted(used - axes - parameters):
            raise DeclarationError(f"no parameter binds the axis `{unknown[0]}`")
