"""Functions of a project that build one submodule for the class that calls them.

``def linear(features): return nn.Dense(features)``, called as ``self.proj = ops.linear(64)``. Such a
function is to its callers what a class-valued field is: a callee with Linen's signature, whose layer
needs a size and streams; it may be one of several. Only functions that do nothing else with Linen
count, and only when every mention of them in the project is a call in a Linen class.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.sizes.mentions import mentions_of
from nnx_migrate.sizes.return_values import is_extensible, is_named, returned_modules
from nnx_migrate.source.project import Module, Project, Scope


@dataclass(frozen=True)
class FactoryFunction:
    """A function whose every ``return`` builds a submodule.

    ``calls`` are those constructor calls with the symbol each builds; ``users`` the Linen classes
    that call the function. ``is_named``: it takes the name of what it builds, by keyword.
    """

    symbol: str
    module: Module
    node: ast.FunctionDef
    calls: tuple[tuple[ast.Call, str], ...]
    users: frozenset[str]
    is_named: bool = False


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


def _function(project: Project, module: Module, node: ast.FunctionDef) -> FactoryFunction | None:
    calls = returned_modules(project, Scope(module), node, named=True)
    built = [call for call, _ in calls]
    named = is_named(node, built)
    if not calls or not is_extensible(node, named=named):
        return None
    symbol = f"{module.name}.{node.name}"
    users = _users(project, symbol, _before_name(node) if named else None)
    return FactoryFunction(symbol, module, node, calls, users, named) if users else None


def _before_name(node: ast.FunctionDef) -> int:
    """How many arguments stand in front of the name."""
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    return names.index("name") if "name" in names else len(names)


def _users(project: Project, symbol: str, most: int | None) -> frozenset[str] | None:
    """The Linen classes that call the function; None when it is used in any other way.

    ``most``: how many arguments a call may give by position where the rest goes by keyword.
    """
    users: set[str] = set()
    for one in mentions_of(project, symbol):
        if one.cls is None or one.call is None:
            return None
        if most is not None and (len(one.call.args) > most or _is_spread(one.call)):
            return None
        users.add(one.cls.name)
    return frozenset(users)


def _is_spread(call: ast.Call) -> bool:
    """Whether a call unpacks arguments: one of them may be any."""
    return any(isinstance(one, ast.Starred) for one in call.args) or any(
        one.arg is None for one in call.keywords
    )
