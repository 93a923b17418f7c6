"""remat_scan of a module class: a deep stack of layers, recomputed piece by piece.

``nn.remat_scan(Block, lengths=(10, 10))(8)`` becomes ``nnm.remat_scan(Block, lengths=(10, 10))(8,
in_features=..., rngs=rngs)``: a class ``Remat_scanBlock`` whose instances hold one array per parameter
with an axis for each length. Options are Linen's and mean the same.

Refused: functions and lambdas in place of the class, options the text does not show.

flax 0.12.8 and 0.12.12: linen/transforms.py, core/lift.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.base import CallRule, Code, Example, LayerCall, Refusal, linen
from nnx_migrate.constructs.lifts import Given, convert_lift, no_named_class, reference

_KEPT = ("lengths", "policy", "variable_broadcast", "variable_carry", "variable_axes", "split_rngs")
_BY_HAND = "make it the __call__ of a module class"


def convert(call: LayerCall) -> Code | Refusal:
    """``nnm.remat_scan(Class, lengths=..., ...)``."""
    return convert_lift("remat_scan", call, ("target", *_KEPT), _KEPT, _unsupported)


def _unsupported(given: Given) -> Refusal | None:
    if "lengths" not in given:
        return Refusal("remat_scan without lengths=", "pass the lengths", given["target"])
    return no_named_class("remat_scan", given, _BY_HAND)


RULES = (
    CallRule(
        name="remat_scan",
        symbols=linen("remat_scan"),
        example=Example(
            "nn.remat_scan(Block, lengths=(4, 4))(8)",
            "nnm.remat_scan(Block, lengths=(4, 4))(8, in_features=..., rngs=rngs)",
        ),
        convert=convert,
        reference=reference,
    ),
)
