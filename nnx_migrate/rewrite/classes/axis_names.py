"""Variables with logical axis names: what may be done with them where a method makes them.

Linen's ``variable_with_axes`` gives an object that constrains its value by the names whenever it is
read or assigned. Here every ``.value`` is written as a call that does so, and therefore all of them
have to be seen.
"""

from __future__ import annotations

import ast

from nnx_migrate.source.bindings import names_bound_at
from nnx_migrate.source.names import Assignment
from nnx_migrate.source.project import Scope
from nnx_migrate.source.walking import walk


def is_plainly_held(call: ast.Call, method: ast.FunctionDef) -> bool:
    """Whether all that happens to what ``call`` gives is ``.value``, itself or through one local."""
    for node in walk(method):
        match node:
            case ast.Attribute(value=value, attr="value") if value is call:
                return True
            case ast.Expr(value=value) if value is call:
                return True
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call:
                return _is_only_read(name, method)
    return False


def _is_only_read(name: str, method: ast.FunctionDef) -> bool:
    """Whether the local is never read, or is bound once and every mention is ``name.value``."""
    nodes = list(walk(method))
    owners = {
        id(one.value) for one in nodes if isinstance(one, ast.Attribute) and one.attr == "value"
    }
    loads = [
        one
        for one in nodes
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]
    shared = any(isinstance(one, ast.Global | ast.Nonlocal) and name in one.names for one in nodes)
    bound = sum(name in names_bound_at(one) for one in nodes)
    return not shared and (not loads or (bound == 1 and all(id(one) in owners for one in loads)))


def names_a_tree(axes: ast.expr, scope: Scope) -> bool:
    """Whether the names are plainly those of several arrays, also under a name of their own."""
    match axes:
        case ast.Name(id=name):
            binding = scope.lookup(name)
            value = binding.value if isinstance(binding, Assignment) else axes
            return not isinstance(value, ast.Name) and names_a_tree(value, scope)
        case ast.Dict():
            return True
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(isinstance(one, ast.Tuple | ast.List | ast.Dict) for one in parts)
    return False
