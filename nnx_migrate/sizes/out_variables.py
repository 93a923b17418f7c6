"""Locals of ``__init__`` for the output sizes of classes that only run time knows."""

from __future__ import annotations

import ast
from functools import lru_cache

from nnx_migrate.abstract.values import Submodule
from nnx_migrate.source.walking import each

OUT_VARIABLE = "out_features_"


def out_variable(layer: Submodule) -> str:
    """Local variable of ``__init__`` that holds the output size of a run-time class.

    ``out_features_of_conv`` for ``self.conv(...)``, with a number where several calls are named so.
    """
    call, owner = layer.call, layer.owner
    stem = _called_name(call)
    calls = _calls_named(owner.info.node, stem) if owner is not None else ()
    number = next((i for i, one in enumerate(calls) if one is call), None)
    if number is None:
        return f"{OUT_VARIABLE}{call.lineno}_{call.col_offset}"
    return f"{OUT_VARIABLE}of_{stem}" + (f"_{number}" if len(calls) > 1 else "")


def _called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return "layer"


@lru_cache(maxsize=1024)
def _calls_named(node: ast.AST, stem: str) -> tuple[ast.Call, ...]:
    """The calls of this name in a class, in the order of its text."""
    calls = [one for one in each(node, ast.Call) if _called_name(one) == stem]
    return tuple(sorted(calls, key=lambda one: (one.lineno, one.col_offset)))
