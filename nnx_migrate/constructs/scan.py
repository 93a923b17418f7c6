"""scan: layers stacked along an axis of their parameters, or one module run over time.

``nn.scan(Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=n)(fields...)``
becomes ``nnm.scan(Block, ...)(fields..., in_features=..., rngs=rngs)``: a class ``ScanBlock`` whose
instances hold one array per parameter for all layers, under Linen's paths and with Linen's shapes,
and whose call is one ``jax.lax.scan``. The options are Linen's and mean the same; arguments become
keywords, ``nn.broadcast`` becomes ``nnm.broadcast``. Variables that the body changes come back,
parameters do not. ``metadata_params={nn.PARTITION_NAME: "layers"}`` names the axis in the metadata.

Refused: functions and layers of Linen's in place of the class, ``methods=``, ``data_transform=``, stacked variables without
``length=`` (NNX builds them before it sees the inputs), ``nn.broadcast`` in
``out_axes``, ``metadata_params`` other than the axis's name, options the text does not show.

flax 0.12.8 and 0.12.12: linen/transforms.py, core/lift.py, core/axes_scan.py.
"""

from __future__ import annotations

import ast

from nnx_migrate.constructs.common.base import Code, Context, LayerCall, Refusal, is_literal, linen
from nnx_migrate.constructs.common.lifts import (
    ArgumentValues,
    convert_lift,
    named_from_the_end,
    no_named_class,
    no_size,
    other_metadata,
    reference,
)
from nnx_migrate.constructs.common.references import name
from nnx_migrate.constructs.common.rules import CallRule, Construct, Example, NameRule

_KEPT = (
    *("variable_axes", "variable_broadcast", "variable_carry", "split_rngs", "in_axes", "out_axes"),
    *("length", "reverse", "unroll", "metadata_params", "check_constancy_invariants"),
    "_split_transpose",
)
_FIELDS = (
    *("target", "variable_axes", "variable_broadcast", "variable_carry", "split_rngs"),
    *("in_axes", "out_axes", "length", "reverse", "unroll", "data_transform", "metadata_params"),
    *("methods", "_split_transpose", "check_constancy_invariants"),
)
_BY_HAND = "build the stack with nnx.vmap over split rngs, then nnx.scan a function (module, carry)"
_BROADCAST = "flax.linen.broadcast"


def convert(call: LayerCall) -> Code | Refusal:
    """``nnm.scan(Class, variable_axes=..., ...)``."""
    return convert_lift("scan", call, _FIELDS, _KEPT, option_refusal)


def option_refusal(values: ArgumentValues) -> Refusal | None:
    """Why the given options cannot be carried over."""
    if "data_transform" in values and not is_literal(values["data_transform"], None):
        return Refusal("scan with data_transform=", _BY_HAND, values["data_transform"])
    refusal = no_named_class("scan", values, _BY_HAND)
    if refusal is None and _stacks(values.get("variable_axes")):
        refusal = no_size("scan", "length", "layers", values)
    refusal = refusal or other_metadata("scan", values) or named_from_the_end("scan", values)
    out_axes = values.get("out_axes")
    if refusal is not None or out_axes is None:
        return refusal
    if any(_named_broadcast(one) for one in ast.walk(out_axes)):
        return Refusal(
            "scan with nn.broadcast in out_axes",
            "return the value in the carry, which is the last step's",
            out_axes,
        )
    return None


def _stacks(axes: ast.expr | None) -> bool:
    return axes is not None and not (isinstance(axes, ast.Dict) and not axes.keys)


def _named_broadcast(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
    return name == "broadcast"


def broadcast(symbol: str, context: Context) -> Code | Refusal:
    """``nnm.broadcast``."""
    return name("nnm.broadcast")


CONSTRUCT = Construct(
    __doc__,
    rules=(
        CallRule(
            name="scan",
            symbols=linen("scan"),
            example=Example(
                "nn.scan(Layer, variable_axes={'params': 0}, length=4)(8)",
                "nnm.scan(Layer, variable_axes={'params': 0}, length=4)(8, in_features=..., rngs=rngs)",
            ),
            convert=convert,
            reference=reference,
        ),
        NameRule(
            name="broadcast",
            symbols=frozenset({_BROADCAST}),
            example=Example("in_axes=(0, nn.broadcast)", "in_axes=(0, nnm.broadcast)"),
            reference=broadcast,
        ),
    ),
    example="""
class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return nn.relu(nn.Dense(8)(x)), None


class Model(nn.Module):
    layers: int = 3

    @nn.compact
    def __call__(self, x):
        stack = nn.scan(
            Block,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=self.layers,
        )
        x, _ = stack(name="blocks")(x, None)
        return x
""",
    inputs="jnp.ones((2, 8))",
    lazy=(
        """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return nn.Dense(8)(x), None


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        stack = nn.scan(
            Block,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=3,
            data_transform=lambda variables: variables,
        )
        return stack()(x, None)[0]
""",
    ),
)
