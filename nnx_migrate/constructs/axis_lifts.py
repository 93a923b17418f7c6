"""``scan_with_axes`` and ``vmap_with_axes`` of flax.linen.partitioning: lifts that name their axis.

They become ``nnm.scan`` and ``nnm.vmap`` with ``metadata_params={nnx.PARTITION_NAME: name}``, so that
the names of every stacked parameter get the axis's. Linen puts it into the collection ``params_axes``
by a second lift, which automatic names of submodules count: ``Map_variablesScanBlock_0``.

The same holds for every further collection that is stacked and named; the lift counts for each.
Linen forgets the names of stacked collections that the lift does not name, here they stay.

Refused: lifts that do not name the axis of the parameters, or that name it differently per collection.

flax 0.12.8 and 0.12.12: linen/partitioning.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from nnx_migrate.constructs import scan, vmap
from nnx_migrate.constructs.common.base import Code, LayerCall, Refusal, is_literal
from nnx_migrate.constructs.common.lifts import Given, convert_lift, reference
from nnx_migrate.constructs.common.rules import CallRule, Construct, Example
from nnx_migrate.edit.calls import Argument, named
from nnx_migrate.edit.expressions import dotted, mapping, string
from nnx_migrate.source.axis_names import named_collections

_HOME = "flax.linen.partitioning"
_SCAN_KEPT = (
    *("variable_axes", "variable_broadcast", "variable_carry", "split_rngs", "in_axes", "out_axes"),
    *("length", "reverse", "unroll"),
)
_SCAN_FIELDS = (
    *("target", *_SCAN_KEPT, "axis_name", "axes_collections", "data_transform", "methods"),
)
_VMAP_KEPT = (
    *("variable_axes", "split_rngs", "in_axes", "out_axes", "axis_size", "axis_name"),
    "spmd_axis_name",
)
_VMAP_FIELDS = (
    *("target", *_VMAP_KEPT[:-1], "partitioning_axis_names", "spmd_axis_name", "methods"),
)
_PLAIN = "stack the parameters alone by a dict that says so, or use nn.scan with metadata_params="


def _convert_scan(call: LayerCall) -> Code | Refusal:
    return _converted("scan", call, _SCAN_FIELDS, _SCAN_KEPT, _scan_refusal, "axis_name")


def _convert_vmap(call: LayerCall) -> Code | Refusal:
    return _converted(
        "vmap", call, _VMAP_FIELDS, _VMAP_KEPT, _vmap_refusal, "partitioning_axis_names"
    )


def _converted(
    function: str,
    call: LayerCall,
    fields: tuple[str, ...],
    kept: tuple[str, ...],
    unsupported: Callable[[Given], Refusal | None],
    option: str,
) -> Code | Refusal:
    """The lift with the name of its axis, which is what ``option`` says."""

    def naming(arguments: Given) -> list[Argument]:
        name = arguments.get(option)
        name = name.values[0] if isinstance(name, ast.Dict) else name
        node = string("layers", '"') if name is None else call.source.render(name)
        return [named("metadata_params", mapping([(dotted("nnx.PARTITION_NAME"), node)]))]

    code = convert_lift(function, call, fields, kept, unsupported, naming)
    return code if isinstance(code, Refusal) else replace(code, imports=code.imports | {"nnx"})


def _scan_refusal(given: Given) -> Refusal | None:
    refusal = _stacks_params("scan_with_axes", given)
    return refusal or scan.unsupported(given)


def _vmap_refusal(given: Given) -> Refusal | None:
    names = given.get("partitioning_axis_names")
    texts = {ast.dump(one) for one in names.values} if isinstance(names, ast.Dict) else set()
    if len(texts) != 1:
        return Refusal("vmap_with_axes without one name for the axis", _PLAIN, names)
    refusal = _stacks_params("vmap_with_axes", given)
    return refusal or vmap.unsupported(given)


def _stacks_params(name: str, given: Given) -> Refusal | None:
    """Without parameters among the named and stacked collections Linen lifts otherwise."""
    axes = given.get("variable_axes")
    named = named_collections(given)
    # From the end Linen counts the names of a layer, and the axes of the stack.
    unplain = isinstance(axes, ast.Dict) and any(
        is_literal(one, None) or isinstance(one, ast.UnaryOp) for one in axes.values
    )
    if unplain or named is None or "params" not in named:
        return Refusal(f"{name} that does not plainly stack and name the parameters", _PLAIN, axes)
    return None


CONSTRUCT = Construct(
    __doc__,
    rules=(
        CallRule(
            name="scan_with_axes",
            symbols=frozenset({f"{_HOME}.scan_with_axes"}),
            example=Example(
                "partitioning.scan_with_axes(Layer, variable_axes={'params': 0}, length=4)(8)",
                "nnm.scan(Layer, variable_axes={'params': 0}, length=4, "
                "metadata_params={nnx.PARTITION_NAME: 'layers'})(8, in_features=..., rngs=rngs)",
            ),
            convert=_convert_scan,
            reference=reference,
        ),
        CallRule(
            name="vmap_with_axes",
            symbols=frozenset({f"{_HOME}.vmap_with_axes"}),
            example=Example(
                "partitioning.vmap_with_axes(Layer, variable_axes={'params': 0}, axis_size=4, "
                "partitioning_axis_names={'params': 'heads'})(8)",
                "nnm.vmap(Layer, variable_axes={'params': 0}, axis_size=4, "
                "metadata_params={nnx.PARTITION_NAME: 'heads'})(8, in_features=..., rngs=rngs)",
            ),
            convert=_convert_vmap,
            reference=reference,
        ),
    ),
    example="""
class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        kernel = partitioning.param_with_axes(
            "kernel", nn.initializers.normal(0.1), (8, 8), axes=("embed", "mlp")
        )
        return jnp.dot(x, kernel), None


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        stack = partitioning.scan_with_axes(
            Block,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=3,
            axis_name="layers",
        )
        return stack(name="stack")(x, None)[0]
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
        stack = partitioning.scan_with_axes(
            Block, variable_broadcast="params", split_rngs={"params": False}, length=3
        )
        return stack()(x, None)[0]
""",
    ),
)
