"""Functions that build for classes: which become NNX with all their users, and which stay as they are.

What a factory function that stays builds is lazy: its users hold it as they hold submodules of lazy classes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from nnx_migrate.constructs import is_linen, name_rule
from nnx_migrate.constructs.common.base import Refusal
from nnx_migrate.rewrite.classes import ClassRefusal
from nnx_migrate.rewrite.keep import unchangeable
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.sizes.factory_calls import FactoryFunction
from nnx_migrate.sizes.mentions import imports_of
from nnx_migrate.sizes.return_values import IN_FEATURES
from nnx_migrate.sizes.scope_functions import ScopeFunction
from nnx_migrate.source.project import Project

RULE = "factory_function"


def stuck_users(
    project: Project, functions: Iterable[FactoryFunction], targets: frozenset[int]
) -> Iterator[tuple[str, ClassRefusal]]:
    """Classes that call a factory function which goes on to build Linen's modules."""
    for function in functions:
        reason = unchangeable(function.module, function.node, targets)
        yield from _refusals(project, function, reason, "the submodule")


def stuck_in_scope(
    project: Project, functions: Mapping[int, ScopeFunction], targets: frozenset[int]
) -> Iterator[tuple[str, ClassRefusal]]:
    """Classes that call a scope function in a file that must stay as it is."""
    for function in functions.values():
        reason = unchangeable(function.module, function.node, targets)
        importing = [
            module.name
            for module in project.modules.values()
            if id(module) not in targets and any(imports_of(project, module, function.symbol))
        ]
        if reason is None and importing:
            reason = f"is imported in {importing[0]}, which is not rewritten"
        yield from _refusals(project, function, reason, "the submodules")


def _refusals(
    project: Project, function: FactoryFunction | ScopeFunction, reason: str | None, what: str
) -> Iterator[tuple[str, ClassRefusal]]:
    """The users of a function that has to stay as it is, where there is a reason."""
    for name in sorted(function.users if reason else ()):
        node = project.linen[name].node
        text = f"{function.symbol}, which builds submodules for it, {reason}"
        yield name, ClassRefusal(node, text, f"build {what} in {node.name} itself", RULE)


def becomes_nnx(
    function: FactoryFunction, sizes: Mapping[str, ClassSizes], explicit: Collection[str]
) -> bool:
    """Whether a function can take a size and streams where these classes are explicit."""
    if function.is_fixed or not function.users <= frozenset(explicit):
        return False
    return all(
        not isinstance(name_rule(symbol), Refusal)
        if is_linen(symbol)
        else symbol in explicit and _needs_no_more_than_width(sizes[symbol])
        for _, symbol in function.calls
    )


def _needs_no_more_than_width(sizes: ClassSizes) -> bool:
    return all(one.name == IN_FEATURES for one in sizes.new_arguments)
