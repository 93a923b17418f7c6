"""Recorded sizes of layers that a function outside the class builds for it.

A recording knows the class that runs and the place of each constructor call, which here stands in a
function. Which call of the function it came through it does not know: the class has to have only one.
"""

from __future__ import annotations

import ast

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.values import Instance
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.evidence import ClassEvidence, RecordedAxis, SizeEvidence, whole
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.in_scope import axes_shown
from nnx_migrate.sizes.result import SiteKind


def size_in_function(
    analysis: ClassAnalysis, evidence: ClassEvidence, call: ast.Call, argument: SizeArgument | None
) -> SizeEvidence | None:
    """The recorded size that the function called here needs; None unless a layer in it shows it."""
    module = analysis.interpreter.built.get(id(call))
    if argument is None or not isinstance(module, Instance) or module.info.function is None:
        return None
    if sum(_runs(analysis, one.info.name, module.info.name) for one in _functions(analysis)) != 1:
        return None
    sizes = analysis.sizes_of(module.info.name)
    for site in sizes.sites.values():
        axes = axes_shown(site, argument, sizes)
        parts = [
            evidence.size(site.call, RecordedAxis("__call__", None, axis), module.info.module)
            for axis in axes
        ]
        found = [one for one in parts if one is not None and _is_spelled(one)]
        if axes and len(found) == len(axes):
            return found[0] if argument.axis is not None else whole(found)
    return None


def _is_spelled(found: SizeEvidence) -> bool:
    """Whether a size reads no variable of a loop, which stands in the function."""
    return all(ex.is_input(name) for name in found.size.names)


def _functions(analysis: ClassAnalysis) -> list[Instance]:
    """The calls of functions that build for the class under analysis."""
    built = analysis.interpreter.built.values()
    return [one for one in built if isinstance(one, Instance) and one.info.function is not None]


def _runs(analysis: ClassAnalysis, name: str, other: str) -> int:
    """How many calls of the function ``other`` one call of ``name`` leads to."""
    sites = analysis.sizes_of(name).sites.values()
    inner = (
        _runs(analysis, str(one.symbol), other) for one in sites if one.kind is SiteKind.FUNCTION
    )
    return int(name == other) + sum(inner)
