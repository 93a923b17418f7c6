"""Submodules of which Linen's initial call reaches a part: ``self.vae.encode(x)`` makes no decoder."""

from __future__ import annotations

from nnx_migrate.abstract.values import Instance, Use
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.initial_call import METHOD
from nnx_migrate.sizes.inference.module_arguments import makes_variables
from nnx_migrate.sizes.inference.reachability import ways

PART = (
    "the initial call reaches a part of it by other methods than __call__:"
    " Linen's init makes no parameters for the rest"
)


def reaching(analysis: ClassAnalysis) -> tuple[frozenset[str], ...]:
    """For each submodule with variables, the methods that reach it wherever ``__call__`` does."""
    found = []
    for module in analysis.interpreter.submodules.values():
        uses = analysis.root.records.get(id(module.call), [])
        if uses and makes_variables(analysis, module):
            targets = _ways([one for one in uses if one.entry == METHOD])
            entries = {one.entry for one in uses}
            whole = (
                name
                for name in entries
                if _covers(_ways([one for one in uses if one.entry == name]), targets)
            )
            found.append(frozenset({METHOD, *whole}))
    return tuple(dict.fromkeys(found))


def check_whole(analysis: ClassAnalysis, module: Instance, uses: list[Use]) -> None:
    """Note where the initial call reaches a module, and not all that it builds."""
    targets = _ways(uses)
    if not targets:
        return
    for methods in analysis.sizes_of(module.info.name).reaching:
        if not _covers(_ways([one for one in uses if one.method in methods]), targets):
            analysis.problems.append((module.call or analysis.root.info.node, PART))
            return


def _ways(uses: list[Use]) -> set[frozenset[object]]:
    return set(map(frozenset, ways(uses)))


def _covers(choices: set[frozenset[object]], targets: set[frozenset[object]]) -> bool:
    return frozenset() in choices or (bool(targets) and choices >= targets)
