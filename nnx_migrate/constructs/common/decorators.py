"""Linen decorators of methods, whole: ``@nn.compact``, ``@nn.remat``, ``@partial(nn.scan, variable_broadcast="params", in_axes=1, ...)`` becomes ``@partial(nnm.scan, ...)``, and
``@partial(nn.vmap, ...)`` becomes ``@partial(nnm.vmap, ...)``: options are Linen's and mean the same.

Refused: ``variable_axes`` that stack variables, options the text does not show, and every other lifted decorator.

flax 0.12.8 and 0.12.12: linen/transforms.py.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.constructs.common.base import Code, Refusal, Source, comments_without, is_literal
from nnx_migrate.constructs.common.lifts import is_shared, other_metadata
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.expressions import Expression

_REMAT = {"flax.linen.remat", "flax.linen.checkpoint"}
_REMAT_DEFAULTS = {"variables": True, "rngs": True, "concrete": False, "methods": None}
_REMAT_OPTIONS = ("prevent_cse", "static_argnums", "policy")
_LIFT_OPTIONS: Mapping[str, tuple[str, ...]] = {
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
    options = {str(keyword.arg): keyword.value for keyword in decorator.keywords}
    if symbol in _REMAT:
        return _remat(decorator, options, source)
    name = symbol.removeprefix("flax.linen.")
    if name in _LIFT_OPTIONS:
        return _lift(name, decorator, options, source)
    return None


def _remat(decorator: ast.Call, values: Mapping[str, ast.expr], source: Source) -> Code | Refusal:
    for name, value in values.items():
        if name in _REMAT_OPTIONS:
            continue
        if name not in _REMAT_DEFAULTS or not is_literal(value, _REMAT_DEFAULTS[name]):
            return Refusal(f"remat with {name}=", "wrap the method in nnm.remat by hand", value)
    options = {name: value for name, value in values.items() if name in _REMAT_OPTIONS}
    return Code(_partial(decorator, "nnm.remat", options, source), frozenset({"nnm"}))


def _lift(
    name: str, decorator: ast.Call, values: Mapping[str, ast.expr], source: Source
) -> Code | Refusal:
    """``scan`` and ``vmap``."""
    recipe = "lift a class that has the method as its __call__"
    for option, value in values.items():
        if option not in _LIFT_OPTIONS[name]:
            return Refusal(f"a method lifted by {name} with {option}=", recipe, value)
    if not is_shared(values.get("variable_axes")):
        return Refusal(f"a method lifted by {name} that stacks variables", recipe, decorator)
    refusal = other_metadata(name, values)
    if refusal is not None:
        return refusal
    options = dict(values)
    if name == "scan":
        options.pop("variable_axes", None)
    return Code(_partial(decorator, f"nnm.{name}", options, source), frozenset({"nnm"}))


def _partial(
    decorator: ast.Call, target: str, values: Mapping[str, ast.expr], source: Source
) -> Expression:
    options = [source.argument(value, name) for name, value in values.items()]
    left = comments_without(source, decorator, [*values.values()])
    function = source.render(decorator.func)
    return made_call(function, target, *options, left=left, unit=source.unit)
