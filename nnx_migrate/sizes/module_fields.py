"""Fields that some constructor call of the project gives a module: they hold no mere activation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from nnx_migrate.sizes.return_values import is_module_class
from nnx_migrate.source.classes import arguments_by_field
from nnx_migrate.source.linked import linked_modules
from nnx_migrate.source.names import Assignment
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, walk


@lru_cache(maxsize=2)  # every analysis of a project asks
def fields_with_modules(project: Project) -> frozenset[tuple[str, str]]:
    """Classes and their fields that a constructor call gives a module, or what holds one.

    ``Block(act=Dense(3))`` is one, and so is ``Block(act=self.mix)`` where `setup` makes ``mix`` a module.
    """
    linked = linked_modules(project)
    modules = [one for one in project.modules.values() if one.name in linked]
    return frozenset(found for module in modules for found in _in_module(project, module))


def _in_module(project: Project, module: Module) -> Iterator[tuple[str, str]]:
    for node in module.nodes:
        if not isinstance(node, ast.Call) or not (node.args or node.keywords):
            continue
        scope = Scope(module).around(node)
        cls = project.linen.get(project.resolve(node.func, scope) or "")
        if cls is None:
            continue
        around = module.parents.class_of(node)
        for name, value in arguments_by_field(cls, node.args, node.keywords):
            if _holds_module(project, value, scope, around):
                yield from ((owner.name, name) for owner in cls.mro)


def _holds_module(
    project: Project, value: ast.expr, scope: Scope, around: ast.ClassDef | None
) -> bool:
    """Whether an expression builds a module, or names what was assigned one."""
    assigned: list[ast.expr] = [value]
    for node in walk(value):
        match node:
            case ast.Name(id=name):
                match scope.lookup(name):
                    case Assignment(value=found):
                        assigned.append(found)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if around is not None:
                assigned += _assigned(around, name)
    return any(_builds(project, one, scope) for one in assigned)


def _builds(project: Project, value: ast.expr, scope: Scope) -> bool:
    calls = (one.func for one in each(value, ast.Call))
    return any(is_module_class(project, project.resolve(one, scope)) for one in calls)


def _assigned(cls: ast.ClassDef, name: str) -> Iterator[ast.expr]:
    """What methods assign to ``self.name``."""
    for node in walk(cls):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)], value=value
            ) if attribute == name:
                yield value
