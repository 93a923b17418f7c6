"""Lifted classes that a method makes only to build from: ``__init__`` makes and builds them now."""

from __future__ import annotations

import ast
from collections.abc import Collection

from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each

_LIFTS = frozenset(
    f"flax.linen.{name}"
    for name in (
        *("scan", "vmap", "remat", "checkpoint", "partitioning.remat"),
        *("partitioning.scan_with_axes", "partitioning.vmap_with_axes"),
    )
)


def unused_classes(
    project: Project, scope: Scope, method: ast.FunctionDef, built: Collection[int]
) -> list[ast.stmt]:
    """Statements ``Block = nn.scan(...)`` of the method whose name only built submodules call.

    Args:
      built: ids of the constructor calls that the new method no longer makes.
    """
    callees = {id(node.func) for node in each(method, ast.Call) if id(node) in built}
    found: list[ast.stmt] = []
    for statement in method.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)):
                is_lift = project.resolve(function, scope) in _LIFTS
                if is_lift and _only_called(method, name, callees):
                    found.append(statement)
    return found


def _only_called(method: ast.FunctionDef, name: str, callees: Collection[int]) -> bool:
    uses = [node for node in each(method, ast.Name) if node.id == name]
    loads = [one for one in uses if isinstance(one.ctx, ast.Load)]
    single = len(uses) == len(loads) + 1
    return single and bool(loads) and all(id(one) in callees for one in loads)
