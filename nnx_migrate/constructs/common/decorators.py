"""Linen decorators of methods, whole: ``@nn.compact``, ``@nn.remat``, ``@partial(nn.scan, variable_broadcast="params", in_axes=1, ...)`` becomes ``@partial(nnm.scan, ...)``, and
``@partial(nn.vmap, ...)`` becomes ``@partial(nnm.vmap, ...)``: options are Linen's and mean the same.

Refused: ``variable_axes`` that stack variables, options the text does not show, and every other lifted decorator.

flax 0.12.8 and 0.12.12: linen/transforms.py.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.constructs.common.base import Code, Refusal, Source, is_literal, left_comments
from nnx_migrate.constructs.common.lifts import is_shared, other_metadata
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.expressions import Expression

_REMAT = {"flax.linen.remat", "flax.linen.checkpoint"}
_REMAT_DEFAULTS = {"variables": True, "rngs": True, "concrete": False, "methods": None}
_REMAT_KEPT = ("prevent_cse", "static_argnums", "policy")
_LIFTS_KEPT: Mapping[str, tuple[str, ...]] = {
    "scan": (
        *("variable_axes", "variable_broadcast", "variable_carry", "split_rngs", "in_axes"),
        *("out_axes", "length", "reverse", "unroll", "metadata_params"),
        *("check_constancy_invariants", "_split_transpose"),
    ),
    "vmap": (
        *("variable_axes", "split_rngs", "in_axes", "out_axes", "axis_size", "axis_name"),
        *("spmd_axis_name", "metadata_params"),
    ),
}


def partial_decorator(decorator: ast.Call, symbol: str, source: Source) -> Code | Refusal | None:
    """``functools.partial(<Linen transformation>, ...)`` used as a decorator; None: not known."""
    if any(keyword.arg is None for keyword in decorator.keywords) or len(decorator.args) != 1:
        return Refusal(
            f"{symbol} with arguments that the decorator does not name",
            "pass them as keywords",
            decorator,
        )
    given = {str(keyword.arg): keyword.value for keyword in decorator.keywords}
    if symbol in _REMAT:
        return _remat(decorator, given, source)
    name = symbol.removeprefix("flax.linen.")
    if name in _LIFTS_KEPT:
        return _lift(name, decorator, given, source)
    return None


def _remat(decorator: ast.Call, given: Mapping[str, ast.expr], source: Source) -> Code | Refusal:
    for name, value in given.items():
        if name in _REMAT_KEPT:
            continue
        if name not in _REMAT_DEFAULTS or not is_literal(value, _REMAT_DEFAULTS[name]):
            return Refusal(f"remat with {name}=", "wrap the method in nnm.remat by hand", value)
    kept = {name: value for name, value in given.items() if name in _REMAT_KEPT}
    return Code(_partial(decorator, "nnm.remat", kept, source), frozenset({"nnm"}))


def _lift(
    name: str, decorator: ast.Call, given: Mapping[str, ast.expr], source: Source
) -> Code | Refusal:
    """``scan`` and ``vmap``."""
    recipe = "lift a class that has the method as its __call__"
    for option, value in given.items():
        if option not in _LIFTS_KEPT[name]:
            return Refusal(f"a method lifted by {name} with {option}=", recipe, value)
    if not is_shared(given.get("variable_axes")):
        return Refusal(f"a method lifted by {name} that stacks variables", recipe, decorator)
    refusal = other_metadata(name, given)
    if refusal is not None:
        return refusal
    kept = dict(given)
    if name == "scan":
        kept.pop("variable_axes", None)
    return Code(_partial(decorator, f"nnm.{name}", kept, source), frozenset({"nnm"}))


def _partial(
    decorator: ast.Call, target: str, kept: Mapping[str, ast.expr], source: Source
) -> Expression:
    options = [source.argument(value, name) for name, value in kept.items()]
    left = left_comments(source, decorator, [*kept.values()])
    function = source.render(decorator.func)
    return made_call(function, target, *options, left=left, unit=source.unit)
