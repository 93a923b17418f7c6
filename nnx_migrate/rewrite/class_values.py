"""Classes of modules that a method has as values and no more than calls: ``block = nn.remat(Block)``.

What the calls build, ``block(8)``, is lazy where the class is. A value that goes anywhere else (a field, a
table, another function) is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode, parameter_names
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, runtime_nodes, walk

CLASS_LIFTS = frozenset(f"flax.linen.{one}" for one in ("checkpoint", "remat", "scan", "vmap"))
_LIFTS = CLASS_LIFTS | {"flax.linen.partitioning.remat"}
_PARTIAL = "functools.partial"


@dataclass(frozen=True)
class ClassValue:
    """A name of a class that is not called by itself.

    Attributes:
      symbol: the class.
      node: its name.
      wholes: what is made of it, ``nn.remat(Block)``.
      partials: those of them that give it fields.
      calls: the calls of that, which build.
    """

    symbol: str
    node: ast.expr
    wholes: tuple[ast.expr, ...]
    partials: tuple[ast.Call, ...]
    calls: tuple[ast.Call, ...]


Mention = tuple[ast.expr, str, ClassValue | None]  # the name, the class, what becomes of it


@lru_cache(maxsize=1 << 12)  # every conversion of a class asks
def class_values(project: Project, cls: ClassInfo) -> tuple[Mention, ...]:
    """The Linen classes that the methods of a class have as values; None where one goes elsewhere."""
    return tuple(_class_values(project, cls))


def _class_values(project: Project, cls: ClassInfo) -> Iterator[Mention]:
    for method in cls.methods.values():
        scope = cls.scope.enter(method)
        called = {id(one.func) for one in each(method, ast.Call)}
        for node in runtime_nodes(method):
            if isinstance(node, ast.Name | ast.Attribute) and id(node) not in called:
                symbol = project.resolve(node, scope)
                if symbol in project.linen:
                    yield node, symbol, class_value(project, cls.module, scope, node)


def class_value(
    project: Project, module: Module, scope: Scope, node: ast.expr
) -> ClassValue | None:
    """What becomes of the name of a class in a function; None where that is not seen."""
    parents = module.parents
    function, built = parents.function(node), project.resolve(node, scope)
    if function is None or built is None:
        return None
    wholes: dict[int, ast.expr] = {}
    partials: list[ast.Call] = []
    calls: list[ast.Call] = []
    names: set[str] = set()
    todo: list[ast.expr] = [node]
    while todo:
        one = todo.pop()
        match parents.of(one):
            case ast.Call(func=called) as call if called is one:
                calls.append(call)
            case ast.Call(func=called, args=[first, *_]) as call if first is one:
                symbol = project.resolve(called, scope)
                if symbol not in _LIFTS and symbol != _PARTIAL:
                    return None
                wholes[id(call)] = call
                partials += [call] if symbol == _PARTIAL else []
                todo.append(call)
            case ast.IfExp(test=test) as choice if test is not one:
                if id(choice) not in wholes:
                    todo.append(choice)
                wholes[id(choice)] = choice
            case ast.Assign(targets=[ast.Name(id=name)]):
                loads = _loads(function, name)
                if loads is None:
                    return None
                todo += loads if name not in names else ()
                names.add(name)
            case _:
                return None
    return ClassValue(built, node, tuple(wholes.values()), tuple(partials), tuple(calls))


def _loads(function: FunctionNode, name: str) -> list[ast.expr] | None:
    """Where a function reads a local name; None where something else than an assignment binds it.

    So it is where a function inside of this one reads it, which may run at any time.
    """
    if isinstance(function, ast.Lambda) or name in parameter_names(function):
        return None
    stored = {
        id(one.targets[0])
        for one in each(function, ast.Assign)
        if len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
    }
    inner = {
        id(part)
        for one in walk(function)
        if isinstance(one, FunctionNode) and one is not function
        for part in walk(one)
    }
    uses = [one for one in each(function, ast.Name) if one.id == name]
    declared = (one for one in walk(function) if isinstance(one, ast.Global | ast.Nonlocal))
    if any(name in one.names for one in declared) or any(id(one) in inner for one in uses):
        return None
    if any(not isinstance(one.ctx, ast.Load) and id(one) not in stored for one in uses):
        return None
    return [one for one in uses if isinstance(one.ctx, ast.Load)]
