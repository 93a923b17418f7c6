"""Local functions that one transformation runs on the module whose method they stand in.

``nn.scan(body, ...)(self, x)``, ``nn.remat(f)(self, x)``, ``nn.vjp(f, self, x)``: Linen calls the function
with a module that stands for ``self``, and what the function builds belongs to ``self`` (flax 0.12.8,
linen/transforms.py). Its first parameter is that module.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from nnx_migrate.source.bindings import names_bound_at
from nnx_migrate.source.names import parameter_names
from nnx_migrate.source.walking import walk

Resolve = Callable[[ast.expr], str | None]
_WRAPPED = frozenset(
    f"flax.linen.{name}" for name in ("remat", "checkpoint", "jit", "scan", "vmap")
)
_CALLED = frozenset(f"flax.linen.{name}" for name in ("vjp", "grad", "value_and_grad"))
# Statements after which the next one runs, whatever they compute.
_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.FunctionDef, ast.Pass)
_EXPRESSIONS = (ast.Call, ast.Tuple, ast.List, ast.Subscript, ast.Attribute, ast.BinOp, ast.UnaryOp)


def lifted_functions(
    method: ast.FunctionDef, resolve: Resolve
) -> Iterator[tuple[ast.FunctionDef, ast.stmt]]:
    """Functions of a method that surely run, once and so, with the statement that runs each.

    Args:
      resolve: the symbol of an expression in the method.

    A function counts if nothing else mentions it, if it and its parameters are bound once, and if
    nothing may end the method between its definition and its call.
    """
    receiver = next(iter(parameter_names(method)), "")
    for index, statement in enumerate(method.body):
        if isinstance(statement, ast.FunctionDef) and _is_plain(statement):
            name = _one_read(method, statement.name)
            user = _user(method.body[index + 1 :], name) if name is not None else None
            if name is not None and user is not None and _runs(user, name, receiver, resolve):
                yield statement, user


def module_parameter(function: ast.FunctionDef) -> str:
    """What the function calls the module that it is given."""
    return parameter_names(function)[0]


def _is_plain(function: ast.FunctionDef) -> bool:
    spec = function.args
    given = [*spec.posonlyargs, *spec.args]
    if not given or function.decorator_list or spec.kwonlyargs or spec.vararg or spec.kwarg:
        return False
    inner = list(walk(function))
    yields = any(isinstance(one, ast.Yield | ast.YieldFrom | ast.Await) for one in inner)
    return not (spec.defaults or yields or _bound(inner, given[0].arg) > 1)


def _bound(nodes: Sequence[ast.AST], name: str) -> int:
    """How often a name is bound, by whatever: parameters, assignments, imports, handlers, ..."""
    found = [one for node in nodes for one in names_bound_at(node)]
    outer = [
        one for node in nodes if isinstance(node, ast.Nonlocal | ast.Global) for one in node.names
    ]
    return [*found, *outer].count(name)


def _one_read(method: ast.FunctionDef, name: str) -> ast.Name | None:
    """The only mention of a name that one ``def`` binds."""
    nodes = list(walk(method))
    named = [one for one in nodes if isinstance(one, ast.Name) and one.id == name]
    return named[0] if len(named) == 1 and _bound(nodes, name) == 1 else None


def _user(later: Sequence[ast.stmt], name: ast.Name) -> ast.stmt | None:
    """The statement that reads the name, if every one before it lets the next run."""
    for statement in later:
        if any(one is name for one in walk(statement)):
            return statement
        if not isinstance(statement, _PLAIN):
            return None
    return None


def _runs(statement: ast.stmt, name: ast.Name, receiver: str, resolve: Resolve) -> bool:
    match statement:
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _in(value, name, receiver, resolve)
        case ast.Return(value=ast.expr() as value) | ast.Expr(value=value):
            return _in(value, name, receiver, resolve)
    return False


def _in(node: ast.AST, name: ast.Name, receiver: str, resolve: Resolve) -> bool:
    """Whether a transformation runs the function on the receiver wherever ``node`` is evaluated."""
    match node:
        case ast.Call(
            func=ast.Call(func=lift, args=[function, *_]), args=[ast.Name(id=module), *_]
        ) if function is name and module == receiver:
            return resolve(lift) in _WRAPPED
        case ast.Call(func=lift, args=[function, ast.Name(id=module), *_]) if (
            function is name and module == receiver
        ):
            return resolve(lift) in _CALLED
    if not isinstance(node, _EXPRESSIONS):
        return False
    return any(_in(one, name, receiver, resolve) for one in ast.iter_child_nodes(node))
