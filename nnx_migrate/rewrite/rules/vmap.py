"""vmap of a module class: ensembles, and modules mapped over a batch axis.

``nn.vmap(Critic, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None,
axis_size=n)(fields...)`` becomes ``nnm.vmap(Critic, ...)(fields..., in_features=..., rngs=rngs)``: a
class ``VmapCritic`` whose instances hold one array per parameter for all members, under Linen's paths
and with Linen's shapes, and whose call is one ``jax.vmap``. The options are Linen's and mean the
same; with ``variable_axes={"params": None}`` all lanes share the parameters.

Refused: functions and lambdas in place of the class, ``methods=``, stacked variables without
``axis_size=`` (NNX builds them before it sees the inputs), options the text does not show.

flax 0.12.8 and 0.12.12: linen/transforms.py, core/lift.py.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.rewrite.rules.base import (
    CallRule,
    Code,
    Context,
    Example,
    LayerCall,
    Refusal,
    bind,
    is_literal,
    linen,
)

_KEPT = (
    *("variable_axes", "split_rngs", "in_axes", "out_axes", "axis_size", "axis_name"),
    *("spmd_axis_name", "metadata_params"),
)
_BY_HAND = "nnx.vmap the constructor over split rngs, then a function of the module (nnx.StateAxes)"


def convert(call: LayerCall) -> Code | Refusal:
    """``nnm.vmap(Class, variable_axes=..., ...)``."""
    arguments = bind(call.call, ("target", *_KEPT, "methods"))
    if isinstance(arguments, Refusal):
        return arguments
    given = arguments.given
    if arguments.open or "target" not in given:
        return Refusal(
            "vmap whose arguments the call does not show", "pass the class and options", call.call
        )
    refusal = _unsupported(given)
    if refusal is not None:
        return refusal
    texts = [call.render(given["target"])]
    texts += [f"{name}={call.render(given[name])}" for name in _KEPT if name in given]
    return Code(f"nnm.vmap({', '.join(texts)})", frozenset({"nnm"}))


def _unsupported(given: Mapping[str, ast.expr]) -> Refusal | None:
    if "methods" in given and not is_literal(given["methods"], None):
        return Refusal("vmap with methods=", _BY_HAND, given["methods"])
    target = given["target"]
    if not isinstance(target, ast.Name | ast.Attribute | ast.Call):
        return Refusal("vmap of something else than a named module class", _BY_HAND, target)
    size = given.get("axis_size")
    if _stacks(given.get("variable_axes")) and (size is None or is_literal(size, None)):
        return Refusal(
            "vmap that stacks variables without axis_size=",
            "pass the number of lanes as axis_size=: NNX builds them before it sees the inputs",
            given["variable_axes"],
        )
    return None


def _stacks(axes: ast.expr | None) -> bool:
    if not isinstance(axes, ast.Dict):
        return axes is not None
    return not all(key is not None and is_literal(axis, None) for key, axis in _items(axes))


def _items(axes: ast.Dict) -> list[tuple[ast.expr | None, ast.expr]]:
    return list(zip(axes.keys, axes.values, strict=True))


def reference(symbol: str, context: Context) -> Code | Refusal:
    """A bare ``nn.vmap`` is refused: what it will be called with is not known."""
    return Refusal(f"{symbol} used as a {context.value}", "call it with a module class")


RULES = (
    CallRule(
        name="vmap",
        symbols=linen("vmap"),
        example=Example(
            "nn.vmap(Critic, variable_axes={'params': 0}, in_axes=None, axis_size=2)(8)",
            "nnm.vmap(Critic, variable_axes={'params': 0}, in_axes=None, axis_size=2)"
            "(8, in_features=..., rngs=rngs)",
        ),
        convert=convert,
        reference=reference,
    ),
)
