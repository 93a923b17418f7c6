"""Submodules that a constructor call hands to the module it builds."""

from __future__ import annotations

import ast

from nnx_migrate.abstract.lists import alike
from nnx_migrate.abstract.values import (
    Choice,
    ConcatenatedList,
    ExtendedList,
    Instance,
    Perhaps,
    Record,
    RepeatedItem,
    Sequence,
    Submodule,
    Value,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import walk

_MAKES_VARIABLES = frozenset({"param", "variable", "sow", "perturb", "put_variable"})
_MAKES_STATE = _MAKES_VARIABLES | {"make_rng"}


def holds_state(analysis: ClassAnalysis, value: Value) -> bool:
    """Whether a value is, or contains, a submodule with variables or random streams."""

    def any_of(*parts: Value) -> bool:
        return any(holds_state(analysis, one) for one in parts)

    match value:
        case Submodule():
            return True
        case Instance():
            return _is_stateful(analysis, value) or any_of(*value.fields.values())
        case Sequence(items=parts) | Choice(options=parts):
            return any_of(*parts)
        case Record(entries=entries):
            return any_of(*entries.values())
        case RepeatedItem(item=item):
            return any_of(item)
        case ExtendedList(first=first, rest=rest):
            return any_of(*first, rest)
        case ConcatenatedList():
            return any_of(alike(value))
        case Perhaps(item=item):
            return any_of(item)
    return False


def makes_variables(analysis: ClassAnalysis, value: Value) -> bool:
    """Whether Linen's ``init`` may make variables for a submodule when it is called."""
    match value:
        case Submodule(options=options) if options:
            return any(makes_variables(analysis, one) for one in options)
        case Submodule(symbol=symbol):
            return not _is_stateless(symbol)
        case Instance():
            parts = value.fields.values()
            return _makes_own(analysis, value.info) or any(
                isinstance(one, Submodule | Instance) and makes_variables(analysis, one)
                for one in parts
            )
    return True


def _makes_own(analysis: ClassAnalysis, info: ClassInfo) -> bool:
    linen = analysis.interpreter.project.linen
    if _words(info) & _MAKES_VARIABLES:
        return True
    return any(
        _makes_own(analysis, linen[site.symbol])
        if site.symbol in linen
        else not _is_stateless(site.symbol or "")
        for site in analysis.sizes_of(info.name).sites.values()
    )


def _is_stateless(symbol: str) -> bool:
    layer = layer_of(symbol)
    return layer is not None and layer.is_stateless


def _is_stateful(analysis: ClassAnalysis, module: Instance) -> bool:
    return bool(_words(module.info) & _MAKES_STATE or analysis.sizes_of(module.info.name).sites)


def _words(info: ClassInfo) -> set[str]:
    """The attributes that the code of a class names."""
    calls = (node for cls in info.mro for node in walk(cls.node))
    return {node.attr for node in calls if isinstance(node, ast.Attribute)}
