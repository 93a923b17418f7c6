"""Functions of a project that build one submodule for the class that calls them.

``def linear(features): return nn.Dense(features)``, called as ``self.proj = ops.linear(64)``. Such a
function is to its callers what a class-valued field is: a callee with Linen's signature, whose layer
needs a size and streams; it may be one of several. Only functions that do nothing else with Linen
count. One that other code mentions, too, stays as it is, and what it builds stays lazy.

So may be methods of the class itself and functions inside of its methods (`own_factories`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from nnx_migrate.sizes.factory_calls import FactoryFunction, before_name, is_use
from nnx_migrate.sizes.mentions import Mention, mentions_of
from nnx_migrate.sizes.own_factories import own_factories
from nnx_migrate.sizes.return_values import (
    is_extensible,
    is_named,
    is_placed_by_caller,
    returned_holders,
    returned_modules,
)
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project, Scope


@lru_cache(maxsize=2)  # every attempt of a run asks for those of the same project
def factory_functions(project: Project) -> Mapping[int, FactoryFunction]:
    """The factory functions of a project by ``id`` of their node."""
    functions = (
        _function(project, module, node)
        for module in project.modules.values()
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    )
    found = (*functions, *own_factories(project))
    return {id(one.node): one for one in found if one is not None}


def factory_of_call(project: Project, call: ast.Call) -> FactoryFunction | None:
    """The factory function that a call is one of."""
    return next((one for one in factory_functions(project).values() if id(call) in one.uses), None)


def factory_named(project: Project, symbol: str | None) -> FactoryFunction | None:
    """The factory function of that name."""
    return next((one for one in factory_functions(project).values() if one.symbol == symbol), None)


def built_classes(project: Project, symbol: str | None) -> list[ClassInfo]:
    """The Linen classes of a project of which a class or factory function may build one."""
    function = factory_named(project, symbol)
    symbols = [name for _, name in function.calls] if function is not None else [symbol]
    return [project.linen[name] for name in symbols if name in project.linen]


def _function(project: Project, module: Module, node: ast.FunctionDef) -> FactoryFunction | None:
    calls = returned_modules(project, Scope(module), node, named=True)
    if not calls:
        return _of_several(project, module, node)
    named = is_named(node, [call for call, _ in calls])
    if not is_placed_by_caller(node, named=named):
        return None
    symbol = f"{module.name}.{node.name}"
    every = [*mentions_of(project, symbol)]
    most = before_name(node) if named else None
    others = {one.cls.name for one in every if one.cls and not is_use(one.call, most)}
    uses = [one for one in every if one.cls and one.cls.name not in others]
    users = frozenset(one.cls.name for one in uses if one.cls)
    keys = frozenset(id(one.call) for one in uses)
    fixed = len(uses) < len(every) or not is_extensible(node)
    return FactoryFunction(symbol, module, node, calls, users, keys, named, fixed) if uses else None


def _of_several(project: Project, module: Module, node: ast.FunctionDef) -> FactoryFunction | None:
    """A function that puts layers into the one that it returns: ``return nn.Sequential([nn.Dense(4), ...])``.

    It stays as it is. What ``setup`` calls has its layers for its own, as in Linen; a compact method would
    have them itself.
    """
    calls = returned_holders(project, Scope(module), node)
    symbol = f"{module.name}.{node.name}"
    every = [*mentions_of(project, symbol)] if calls else []
    others = {one.cls.name for one in every if one.cls and not _is_in_setup(one)}
    uses = [one for one in every if one.cls and one.cls.name not in others]
    users = frozenset(one.cls.name for one in uses if one.cls)
    keys = frozenset(id(one.call) for one in uses)
    fixed = FactoryFunction(symbol, module, node, calls, users, keys, is_fixed=True)
    return fixed if uses else None


def _is_in_setup(one: Mention) -> bool:
    is_setup = one.function is not None and one.function.name == "setup"
    return is_setup and one.call is not None
