"""Built-in layers that a compact method builds and never calls: Linen's ``init`` gives them no parameters.

``nn.LSTMCell(8).initialize_carry(key, shape)`` asks a cell for zeros. It counts where Linen numbers
submodules and is not built. A layer with a name may be called by code that is not seen here, unless
all that the method does with the name is to ask it for a carry or a field.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.sizes.result import ClassSizes, Site, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

RULE = "compact"
_CARRY = "initialize_carry"
_CALLS = frozenset({"__call__", "attend"})  # these make parameters, whoever is handed them


def without_uncalled(cls: ClassInfo, sizes: ClassSizes) -> ClassSizes:
    """``sizes`` where cells that are built for a carry are never reached.

    Raises:
      Refused: a layer with a name is only asked for a carry or its fields.
    """
    layers = {key: one for key, one in sizes.sites.items() if one.kind is SiteKind.LAYER}
    unreached: dict[int, Site] = {}
    for name, method in cls.methods.items():
        if name == "setup":
            continue
        for node in walk(method):
            match node:
                case ast.Call(func=ast.Attribute(value=built, attr=attr)) if (
                    attr == _CARRY and id(built) in layers
                ):
                    unreached[id(built)] = replace(layers[id(built)], reached="False")
        for built in _only_asked(method):
            if id(built) in layers:
                raise Refused(
                    built,
                    "it is never called, and Linen's init gives it no parameters then",
                    "ask for the carry where the cell is built, or write the values out",
                    RULE,
                )
    return replace(sizes, sites={**sizes.sites, **unreached})


def _only_asked(method: ast.FunctionDef) -> Iterator[ast.Call]:
    """What is bound to a local name once, and then only asked for a carry or fields."""
    names = each(method, ast.Name)
    asked = {id(one.value) for one in each(method, ast.Attribute) if one.attr not in _CALLS}
    asked -= {
        id(one.func.value)
        for one in each(method, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr != _CARRY
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
