"""Layers and modules that a compact method builds and never calls: Linen's ``init`` gives them no parameters.

A layer with a name may be called by code that is not seen here, unless all that the method does with
the name is to ask it for a field, or for a carry after its arguments changed (else `CarryCell`).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.sizes.result import ClassSizes, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

RULE = "compact"
_BUILT = frozenset({SiteKind.LAYER, SiteKind.CLASS})
_CALLS = frozenset({"__call__", "attend"})  # these make parameters, whoever is handed them


def check_uncalled(cls: ClassInfo, sizes: ClassSizes) -> None:
    """Refuse a layer with a name that is only asked for a carry or its fields.

    Raises:
      Refused: there is one.
    """
    for name, method in cls.methods.items():
        for built in _only_asked(method) if name != "setup" else ():
            site = sizes.sites.get(id(built))
            if site is not None and site.kind in _BUILT and site.reached != "False":
                raise Refused(
                    built,
                    "it is never called, and Linen's init gives it no parameters then",
                    "ask for the carry where the cell is built, or write the values out",
                    RULE,
                )


def _only_asked(method: ast.FunctionDef) -> Iterator[ast.Call]:
    """What is bound to a local name once, and then only asked for a carry or fields."""
    names = each(method, ast.Name)
    asked = {id(one.value) for one in each(method, ast.Attribute) if one.attr not in _CALLS}
    asked -= {
        id(one.func.value)
        for one in each(method, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr != "initialize_carry"
    }
    for node in walk(method):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as built):
                same = [one for one in names if one.id == name]
                loads = [one for one in same if isinstance(one.ctx, ast.Load)]
                if len(same) == len(loads) + 1 and all(id(one) in asked for one in loads):
                    yield built


# ---- lifted classes that a method makes only to build from: ``__init__`` makes and builds them now

_LIFTS = frozenset(
    f"flax.linen.{name}" for name in ("scan", "vmap", "remat", "checkpoint", "partitioning.remat")
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
