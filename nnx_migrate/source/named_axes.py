"""Parameters that flax.linen.partitioning declares: read as the parameters of the module they are.

``param_with_axes("kernel", init, shape, axes=names)`` in a method of a class makes a parameter of the
module that the method belongs to (flax 0.12.8, linen/partitioning.py). In the parsed tree such a call
is a :class:`NamedParam`, which reads ``self.param("kernel", init, shape)`` and knows its axes, so that
nobody else has to tell two ways to make a parameter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.source.names import Import, Table, canonical, dotted

_SYMBOL = "flax.linen.partitioning.param_with_axes"
_WORD = "param_with_axes"


class NamedParam(ast.Call):
    """``self.param(...)`` whose value is constrained by ``axes``, an expression."""

    axes: ast.expr


def with_named_params(tree: ast.Module, table: Table, text: str) -> ast.Module:
    """``tree``, changed in place: every declaration that is read as a parameter."""
    if _WORD in text:
        for cls in (one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and one.bases):
            for method in (one for one in cls.body if isinstance(one, ast.FunctionDef)):
                _replace_in(method, table)
    return tree


def _replace_in(method: ast.FunctionDef, table: Table) -> None:
    arguments = (*method.args.posonlyargs, *method.args.args)
    if not arguments or any(ast.unparse(one) == "staticmethod" for one in method.decorator_list):
        return
    for statement in method.body:
        for node in _outside_functions(statement):
            for field, value in ast.iter_fields(node):
                if isinstance(value, ast.Call):
                    setattr(node, field, _named(value, arguments[0].arg, table))
                elif isinstance(value, list):
                    value[:] = [
                        _named(one, arguments[0].arg, table) if isinstance(one, ast.Call) else one
                        for one in value
                    ]


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run as the method does: in a function the module in force may be another."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return
    yield node
    for child in list(ast.iter_child_nodes(node)):
        yield from _outside_functions(child)


def _named(call: ast.Call, receiver: str, table: Table) -> ast.Call:
    if _symbol(call.func, table) != _SYMBOL or any(
        one.arg in (None, "module") for one in call.keywords
    ):
        return call
    axes = next((one.value for one in call.keywords if one.arg == "axes"), None)
    if axes is None:
        return call
    owner = ast.copy_location(ast.Name(receiver, ast.Load()), call.func)
    found = NamedParam(
        ast.copy_location(ast.Attribute(owner, "param", ast.Load()), call.func),
        call.args,
        [one for one in call.keywords if one.arg != "axes"],
    )
    found.axes = axes
    return ast.copy_location(found, call)


def _symbol(function: ast.expr, table: Table) -> str | None:
    parts = dotted(function)
    binding = table.get(parts[0]) if parts else None
    if parts is None or not isinstance(binding, Import):
        return None
    return canonical(".".join((binding.target, *parts[1:])))
