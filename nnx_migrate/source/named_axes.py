"""Variables that flax.linen.partitioning declares: read as the variables of the module they are.

``param_with_axes("kernel", init, shape, axes=names)`` in a method of a class makes a parameter of the
module that the method belongs to, ``variable_with_axes("stats", "mean", init, shape, axes=names)``
another variable (flax 0.12.8, linen/partitioning.py). In the parsed tree such a call is a
:class:`NamedCall`, which reads ``self.param("kernel", init, shape)`` or ``self.variable(...)`` and knows
its axes, so that nobody else has to tell two ways to make a variable.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.names import Import, Table, canonical, dotted
from nnx_migrate.source.walking import each

_HOME = "flax.linen.partitioning."
_METHODS = {f"{_HOME}param_with_axes": "param", f"{_HOME}variable_with_axes": "variable"}
_WORDS = ("param_with_axes", "variable_with_axes")
# What Linen's own method calls the arguments that have other names here.
_RENAMED = {"collection": "col"}


class NamedCall(ast.Call):
    """``self.param(...)`` or ``self.variable(...)`` whose value is constrained by ``axes``.

    ``axes`` and ``fallback`` are expressions that are evaluated where the call is.
    """

    _fields = (*ast.Call._fields, "axes", "fallback")
    axes: ast.expr
    fallback: ast.expr | None


def may_name_calls(text: str) -> bool:
    """Whether a file may have such declarations."""
    return any(word in text for word in _WORDS)


def with_named_calls(tree: ast.Module, plain: ast.Module, table: Table) -> ast.Module:
    """``tree``, changed in place: every declaration that is read as a variable.

    Args:
        plain: a tree of the same text, as it is written.
        table: what the file's names are bound to.
    """
    inner = each(plain, ast.FunctionDef | ast.Lambda)
    shadowed = frozenset[str]().union(*map(names_bound_below, inner))
    known = {name: one for name, one in table.items() if name not in shadowed}
    for cls in ast.walk(tree):
        if isinstance(cls, ast.ClassDef) and cls.bases:
            for method in (one for one in cls.body if isinstance(one, ast.FunctionDef)):
                _replace_in(method, known)
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
    method = _METHODS.get(_symbol(call.func, table) or "")
    if method is None or any(one.arg in (None, "module") for one in call.keywords):
        return call
    # An initialiser of a parameter may have an argument of the other name.
    names = ("axes", "fallback") if method == "variable" else ("axes",)
    given = {one.arg: one.value for one in call.keywords if one.arg in names}
    if "axes" not in given:
        return call
    owner = ast.copy_location(ast.Name(receiver, ast.Load()), call.func)
    found = NamedCall(
        ast.copy_location(ast.Attribute(owner, method, ast.Load()), call.func),
        call.args,
        [_renamed(one, method) for one in call.keywords if one.arg not in given],
    )
    found.axes, found.fallback = given["axes"], given.get("fallback")
    return ast.copy_location(found, call)


def _renamed(keyword: ast.keyword, method: str) -> ast.keyword:
    if method == "param" or keyword.arg not in _RENAMED:
        return keyword
    return ast.copy_location(ast.keyword(_RENAMED[keyword.arg], keyword.value), keyword)


def _symbol(function: ast.expr, table: Table) -> str | None:
    parts = dotted(function)
    binding = table.get(parts[0]) if parts else None
    if parts is None or not isinstance(binding, Import):
        return None
    return canonical(".".join((binding.target, *parts[1:])))
