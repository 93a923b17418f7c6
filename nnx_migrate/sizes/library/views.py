"""``nn.map_variables``: the same class under another name, its parameters seen through functions.

The functions must keep every path, which a ``jax.tree.map`` over their argument does, and read nothing
of the method around them: the constructor makes them, for all calls.
"""

from __future__ import annotations

import ast

from nnx_migrate.sizes.frames import Function
from nnx_migrate.sizes.library_call import LibraryCall
from nnx_migrate.sizes.values import Choice, Class, Factories, Library, LiftedLayer, Partial, Value
from nnx_migrate.source.names import parameter_names

_TREE_MAPS = ("jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map")
_MAPPED = "Map_variables"
_AT_INIT = ("self.is_initializing()", "self.is_mutable_collection('params')")


def problem_of(call: LibraryCall) -> str | None:
    """Why the functions or ``init=`` of a call cannot be carried over."""
    if _may_be_mapped(call.get(0, "target")):
        return "map_variables of what another map_variables maps"
    for index, name in ((2, "trans_in_fn"), (3, "trans_out_fn")):
        if not _keeps_paths(call, call.get(index, name)):
            return f"map_variables whose {name} is not plainly jax.tree.map over its argument"
        if not _is_closed(call.get(index, name)):
            return f"map_variables whose {name} reads variables of the function around it"
    return _wrong_init(call)


def _may_be_mapped(target: Value | None) -> bool:
    match target:
        case Partial(target=inner):
            return _may_be_mapped(inner)
        case Choice(options=options) | Factories(options=options):
            return any(map(_may_be_mapped, options))
        case Class(lifted=lifted) | LiftedLayer(lifted=lifted):
            return lifted is None or _MAPPED in lifted
    return False


def _wrong_init(call: LibraryCall) -> str | None:
    target, init = call.get(0, "target"), _argument(call, 4, "init")
    if isinstance(target, Function):
        if target.owner is not None:
            return "map_variables of a bound method"
        named = _argument(call, 5, "mutable")
        if any(one is not None and not _is_false(one) for one in (init, named)):
            return "map_variables of a function that changes or makes parameters"
        return None
    return None if init is not None and _is_init(init) else "map_variables of a class without init="


def _argument(call: LibraryCall, index: int, name: str) -> ast.expr | None:
    if index < len(call.node.args):
        return call.node.args[index]
    return next((one.value for one in call.node.keywords if one.arg == name), None)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_init(node: ast.expr) -> bool:
    """Whether it holds in Linen's initial call: ``True``, or ``self.is_initializing()``."""
    if isinstance(node, ast.Constant):
        return node.value is True
    return ast.unparse(node) in _AT_INIT


def _keeps_paths(call: LibraryCall, function: Value | None) -> bool:
    if function is None:
        return True
    if isinstance(function, Partial):
        target = function.target
        is_map = isinstance(target, Library) and target.symbol in _TREE_MAPS
        return is_map and len(function.args) == 1 and not function.kwargs
    if not isinstance(function, Function) or function.owner is not None:
        return False
    node = function.node
    result = node.body if isinstance(node, ast.Lambda) else _returned(node)
    match result:
        case ast.Call(func=mapper, args=[leaf, ast.Name(id=tree)], keywords=[]):
            scope = function.scope.enter(node)
            names = tuple(parameter_names(node))
            symbol = call.interpreter.project.resolve(mapper, scope)
            is_pure = not any(isinstance(one, ast.NamedExpr) for one in ast.walk(leaf))
            return names == (tree,) and symbol in _TREE_MAPS and is_pure
    return False


def _is_closed(function: Value | None) -> bool:
    """Whether a function reads names of its module, and its own, alone."""
    if isinstance(function, Partial):
        return all(map(_is_closed, function.args))
    if not isinstance(function, Function):
        return function is None or isinstance(function, Library)
    names = {one.id for one in ast.walk(function.node) if isinstance(one, ast.Name)}
    names -= {*parameter_names(function.node)}
    return not any(names & table.keys() for table in function.scope.tables)


def _returned(node: ast.AST) -> ast.expr | None:
    """What a function without other statements returns."""
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return None
    body = node.body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    match body:
        case [ast.Return(value=value)]:
            return value
    return None
