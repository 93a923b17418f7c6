"""Functions of a project that build Linen submodules, whether or not they can be followed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from nnx_migrate.sizes.mentions import statements_in
from nnx_migrate.sizes.parentless import parentless_calls
from nnx_migrate.sizes.return_values import is_module_class
from nnx_migrate.source.growth import grown
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import walk

Functions = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(maxsize=2)  # every analysis of a project asks
def building_functions(project: Project) -> frozenset[str]:
    """Symbols of module-level functions that construct a Linen module or call one that does.

    A name counts when any of the functions that a module may bind it to does, decorated or not.
    """
    called: dict[str, set[str]] = {}
    for module in project.modules.values():
        for node in functions_in(module.tree.body):
            called.setdefault(f"{module.name}.{node.name}", set()).update(
                called_in(project, module, node)
            )
    return grown(
        (key for key, names in called.items() if any(is_module_class(project, n) for n in names)),
        lambda found: (key for key, names in called.items() if names & found),
    )


def functions_in(body: list[ast.stmt]) -> Iterator[Functions]:
    """The functions that the statements of a module define, also under conditions."""
    return (one for one in statements_in(body) if isinstance(one, Functions))


def called_in(project: Project, module: Module, node: Functions) -> Iterator[str]:
    """Symbols of what a function calls, but for modules that are nobody's submodules."""
    scope, alone = Scope(module).enter(node), parentless_calls(project)
    for one in walk(node):
        if not isinstance(one, ast.Call) or id(one) in alone:
            continue
        symbol = project.resolve(one.func, scope)
        if symbol is not None:
            yield symbol


def called_builder(project: Project, scope: Scope, call: ast.Call) -> str | None:
    """The symbol of the building function that a call names, if it names one."""
    symbol = project.resolve(call.func, scope)
    if symbol is None and isinstance(call.func, ast.Name):
        is_local = any(call.func.id in table for table in scope.tables)
        symbol = None if is_local else f"{scope.module.name}.{call.func.id}"
    return symbol if symbol in building_functions(project) else None
