"""Which factory functions can be converted, and which classes hang on one another through them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.constructs import is_linen, name_rule
from nnx_migrate.constructs.common.base import Refusal
from nnx_migrate.rewrite.classes import ClassRefusal
from nnx_migrate.rewrite.keep import kept_lines
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.sizes.factories import FactoryFunction
from nnx_migrate.sizes.mentions import imports_of
from nnx_migrate.sizes.return_values import IN_FEATURES
from nnx_migrate.sizes.scope_functions import ScopeFunction
from nnx_migrate.source.project import Module, Project

RULE = "factory_function"


def stuck_users(
    project: Project,
    functions: Mapping[int, FactoryFunction],
    sizes: Mapping[str, ClassSizes],
    targets: frozenset[int],
) -> Iterator[tuple[str, ClassRefusal]]:
    """Classes that call a factory function which must stay as it is."""
    for function in functions.values():
        reason = _why_not(function, sizes, targets)
        for name in sorted(function.users if reason else ()):
            text = f"{function.symbol}, which builds submodules for it, {reason}"
            recipe = f"build the submodule in {project.linen[name].node.name} itself"
            yield name, ClassRefusal(project.linen[name].node, text, recipe, RULE)


def stuck_in_scope(
    project: Project, functions: Mapping[int, ScopeFunction], targets: frozenset[int]
) -> Iterator[tuple[str, ClassRefusal]]:
    """Classes that call a scope function in a file that must stay as it is."""
    for function in functions.values():
        reason = _unchangeable(function.module, function.node, targets)
        importing = [
            module.name
            for module in project.modules.values()
            if id(module) not in targets and any(imports_of(project, module, function.symbol))
        ]
        if reason is None and importing:
            reason = f"is imported in {importing[0]}, which is not rewritten"
        for name in sorted(function.users if reason else ()):
            text = f"{function.symbol}, which builds submodules for it, {reason}"
            recipe = f"build the submodules in {project.linen[name].node.name} itself"
            yield name, ClassRefusal(project.linen[name].node, text, recipe, RULE)


def _unchangeable(module: Module, node: ast.FunctionDef, targets: frozenset[int]) -> str | None:
    if id(module) not in targets:
        return "is not in a file to rewrite"
    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return "is kept as it is" if kept_lines(module) & {*lines} else None


def _why_not(
    function: FactoryFunction, sizes: Mapping[str, ClassSizes], targets: frozenset[int]
) -> str | None:
    unchangeable = _unchangeable(function.module, function.node, targets)
    if unchangeable is not None:
        return unchangeable
    for _, symbol in function.calls:
        if is_linen(symbol):
            name = name_rule(symbol)
            if isinstance(name, Refusal):
                return f"builds {symbol}: {name.message}"
            continue
        arguments = sizes[symbol].new_arguments if symbol in sizes else ()
        if any(one.name != IN_FEATURES for one in arguments):
            return f"builds {symbol}, which needs more than the width of its input"
    return None
