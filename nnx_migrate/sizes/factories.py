"""Functions of a project that build one submodule for the class that calls them.

``def linear(features): return nn.Dense(features)``, called as ``self.proj = ops.linear(64)``. Such a
function is to its callers what a class-valued field is: a callee with Linen's signature, whose layer
needs a size and streams; it may be one of several. Only functions that do nothing else with Linen
count. One that other code mentions, too, stays as it is, and what it builds stays lazy.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.sizes.mentions import mentions_of
from nnx_migrate.sizes.return_values import (
    is_extensible,
    is_named,
    is_placed_by_caller,
    returned_modules,
)
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project, Scope


@dataclass(frozen=True)
class FactoryFunction:
    """A function whose every ``return`` builds a submodule.

    ``calls`` are those constructor calls with the symbol each builds; ``users`` the Linen classes
    that call the function, ``uses`` the ids of their calls. ``is_named``: it takes the name of what it
    builds, by keyword. ``is_fixed``: it cannot take sizes and streams, or other code calls it, too.
    """

    symbol: str
    module: Module
    node: ast.FunctionDef
    calls: tuple[tuple[ast.Call, str], ...]
    users: frozenset[str]
    uses: frozenset[int]
    is_named: bool = False
    is_fixed: bool = False


@lru_cache(maxsize=2)  # every attempt of a run asks for those of the same project
def factory_functions(project: Project) -> Mapping[int, FactoryFunction]:
    """The factory functions of a project by ``id`` of their node."""
    functions = (
        _function(project, module, node)
        for module in project.modules.values()
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    )
    return {id(one.node): one for one in functions if one is not None}


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
    named = is_named(node, [call for call, _ in calls])
    if not calls or not is_placed_by_caller(node, named=named):
        return None
    symbol = f"{module.name}.{node.name}"
    every = [*mentions_of(project, symbol)]
    most = _before_name(node) if named else None
    others = {one.cls.name for one in every if one.cls and not _is_use(one.call, most)}
    uses = [one for one in every if one.cls and one.cls.name not in others]
    users = frozenset(one.cls.name for one in uses if one.cls)
    keys = frozenset(id(one.call) for one in uses)
    fixed = len(uses) < len(every) or not is_extensible(node)
    return FactoryFunction(symbol, module, node, calls, users, keys, named, fixed) if uses else None


def _before_name(node: ast.FunctionDef) -> int:
    """How many arguments stand in front of the name."""
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    return names.index("name") if "name" in names else len(names)


def _is_use(call: ast.Call | None, most: int | None) -> bool:
    """Whether a mention is a call whose caller names the submodule, if anybody.

    Args:
      most: how many arguments a call may give by position where the rest goes by keyword.
    """
    if call is None:
        return False
    return most is None or not (len(call.args) > most or _is_spread(call))


def _is_spread(call: ast.Call) -> bool:
    """Whether a call unpacks arguments: one of them may be any."""
    return any(isinstance(one, ast.Starred) for one in call.args) or any(
        one.arg is None for one in call.keywords
    )
