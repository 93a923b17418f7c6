"""Lifts of flax.linen.partitioning that name their axis: the collections whose variables get the name.

``scan_with_axes(Layer, variable_axes={"params": 0, "cache": 1}, axes_collections=("params", "cache"))``
and ``vmap_with_axes(..., partitioning_axis_names={"params": "heads"})`` lift the class once more for
every collection that is both stacked and named (flax 0.12.8, linen/partitioning.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

_NAMED = frozenset(("axes_collections", "partitioning_axis_names"))


def named_collections(given: Mapping[str, ast.expr]) -> tuple[str, ...] | None:
    """The stacked collections that such a call names; None where the text does not show them.

    Args:
      given: the arguments of the call by name.
    """
    axes = given.get("variable_axes")
    stacked = _texts(axes.keys) if isinstance(axes, ast.Dict) else None
    named: tuple[str, ...] | None = ("params",)
    for option in given.keys() & _NAMED:
        named = _names(given[option])
    if stacked is None or named is None or len({*named}) < len(named):
        return None
    return tuple(one for one in named if one in stacked)


def _names(node: ast.expr) -> tuple[str, ...] | None:
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return _texts(parts)
        case ast.Dict(keys=keys):
            return _texts(keys)
    return None


def _texts(nodes: Iterable[ast.expr | None]) -> tuple[str, ...] | None:
    found = [one.value if isinstance(one, ast.Constant) else None for one in nodes]
    texts = tuple(one for one in found if isinstance(one, str))
    return texts if len(texts) == len(found) else None
