"""map_variables of parameters: a module that computes with a view of what it stores.

``nn.map_variables(Block, "params", trans_in_fn=f, trans_out_fn=g, init=self.is_initializing())(8)``
becomes ``nnm.map_variables(Block, trans_in_fn=f, trans_out_fn=g)(8, in_features=..., rngs=rngs)``: a class
``Map_variablesBlock`` whose instances store ``g`` of the initial parameters and call with ``f`` of the
stored ones. ``nn.map_variables(function, "params", trans_in_fn=f)(self.block, x)``, of a function that
gets a module which exists already, stays what it is.

Both functions have to be a ``jax.tree.map`` over what they are given, which keeps all paths: size
inference reads them (``nnx_migrate/sizes/library/views.py``).

Refused: other collections than ``"params"`` alone (NNX parameters cannot change their collection), a
class without ``init=``, a function with it, filters (``variables=``, ``rngs=``), ``methods=``.

flax 0.12.8 and 0.12.12: linen/transforms.py, core/lift.py.
"""

from __future__ import annotations

import ast

from nnx_migrate.constructs.base import (
    CallRule,
    Code,
    Example,
    LayerCall,
    Refusal,
    is_literal,
    linen,
)
from nnx_migrate.constructs.lifts import Given, convert_lift, not_all_lifted, reference

_KEPT = ("trans_in_fn", "trans_out_fn")
_FIELDS = (
    "target",
    "mapped_collections",
    *_KEPT,
    "init",
    "mutable",
    "rngs",
    "variables",
    "methods",
)
_BY_HAND = "apply the functions where the parameters are made and read"


def convert(call: LayerCall) -> Code | Refusal:
    """``nnm.map_variables(Class, trans_in_fn=..., trans_out_fn=...)``."""
    return convert_lift("map_variables", call, _FIELDS, _KEPT, _unsupported)


def _unsupported(given: Given) -> Refusal | None:
    collections = given.get("mapped_collections")
    if not _is_params(collections):
        return Refusal(
            "map_variables of other collections than 'params' alone",
            _BY_HAND,
            collections or given["target"],
        )
    if "methods" in given and not is_literal(given["methods"], None):
        return Refusal("map_variables with methods=", _BY_HAND, given["methods"])
    return not_all_lifted("map_variables", given, _BY_HAND)


def _is_params(node: ast.expr | None) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return len(node.elts) == 1 and is_literal(node.elts[0], "params")
    return is_literal(node, "params")


RULES = (
    CallRule(
        name="map_variables",
        symbols=linen("map_variables"),
        example=Example(
            "nn.map_variables(Block, 'params', trans_in_fn=f, trans_out_fn=g, init=True)(8)",
            "nnm.map_variables(Block, trans_in_fn=f, trans_out_fn=g)(8, in_features=..., rngs=rngs)",
        ),
        convert=convert,
        reference=reference,
    ),
)
