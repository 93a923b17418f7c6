"""Submodules that a constructor call hands to the module it builds."""

from __future__ import annotations

import ast

from nnx_migrate.abstract.values import (
    Choice,
    Extended,
    Instance,
    Record,
    Repeated,
    Sequence,
    Submodule,
    Value,
)
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.source.walking import walk

_MAKES_STATE = frozenset({"param", "variable", "make_rng", "sow", "perturb", "put_variable"})


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
        case Repeated(item=item):
            return any_of(item)
        case Extended(first=first, rest=rest):
            return any_of(*first, rest)
    return False


def _is_stateful(analysis: ClassAnalysis, module: Instance) -> bool:
    calls = (node for cls in module.info.mro for node in walk(cls.node))
    names = {node.attr for node in calls if isinstance(node, ast.Attribute)}
    return bool(names & _MAKES_STATE or analysis.sizes_of(module.info.name).sites)
