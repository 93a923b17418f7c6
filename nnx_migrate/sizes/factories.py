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
from nnx_migrate.sizes.return_values import is_extensible, returned_modules
from nnx_migrate.source.project import Module, Project, Scope


@dataclass(frozen=True)
class FactoryFunction:
    """A function whose every ``return`` builds a submodule.

    ``calls`` are those constructor calls with the symbol each builds; ``users`` the Linen classes
    that call the function.
    """

    symbol: str
    module: Module
    node: ast.FunctionDef
    calls: tuple[tuple[ast.Call, str], ...]
    users: frozenset[str]


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
    calls = returned_modules(project, Scope(module), node)
    symbol = f"{module.name}.{node.name}"
    users = _users(project, symbol) if calls and is_extensible(node) else None
    return FactoryFunction(symbol, module, node, calls, users) if users else None


def _users(project: Project, symbol: str) -> frozenset[str] | None:
    """The Linen classes that call the function; None when it is used in any other way."""
    users: set[str] = set()
    for one in mentions_of(project, symbol):
        if one.cls is None or one.call is None:
            return None
        users.add(one.cls.name)
    return frozenset(users)
