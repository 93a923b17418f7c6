"""Logical axes and partitioning metadata.

The names that ``flax.linen`` re-exports from ``flax.core`` and ``flax.nnx`` are the same objects
there. ``nn.with_logical_partitioning(init, names)`` of an argument of a layer or parameter becomes
``nnx.with_metadata(init, logical_axes=names)``, elsewhere (and with a mesh or rules) that of ``nnm``, as
``nn.with_partitioning`` does: the variable remembers its names, initial values and programs
without a mesh stay the same, and nothing is constrained by the names, which a person should know.

Constraints on activations and the resolution of names become those of ``nnms``
(``nnx_migrate.sharding``), with Linen's arguments and Linen's algorithm. NNX resolves the same
rules differently (its last matching rule wins, Linen takes rules in order and skips used mesh
axes), so a plain renaming would change specs silently. Mesh axes of size 1 or that the mesh lacks
are not in the specs of ``nnms``, and it serves Explicit axes too.

Boxes (``LogicallyPartitioned``, ``Partitioned``) and functions of trees of them (``unbox``,
``get_partition_spec``, all of ``nn.meta``) become those of ``nnms``, which read Linen's boxes too.
``nnm.variables_of`` returns such boxes where ``model.init`` did, and ``nnm.apply`` opens them; a box
that an initialiser returns becomes the metadata of its variable.

Refused: ``param_with_axes`` and ``variable_with_axes``, whose names programs read from collections of
their own (``params_axes``), and the lifts ``scan_with_axes`` and ``vmap_with_axes`` that name them.

flax 0.12.8 and 0.12.12: core/spmd.py, core/meta.py, linen/spmd.py, linen/partitioning.py,
nnx/spmd.py.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.constructs.common.base import (
    Code,
    Context,
    LayerCall,
    Refusal,
    last,
    linen,
    same_call,
)
from nnx_migrate.constructs.common.references import table
from nnx_migrate.constructs.common.rules import CallRule, Construct, Example, NameRule, RefusalRule
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.expressions import Expression, dotted_node
from nnx_migrate.model import Confidence

# The same objects under public names outside flax.linen (a test compares them).
SAME_ELSEWHERE = {
    "flax.linen.PARTITION_NAME": "nnx.PARTITION_NAME",
    "flax.linen.logical_axis_rules": "nnx.logical_axis_rules",
    "flax.linen.get_logical_axis_rules": "flax.core.spmd.get_logical_axis_rules",
    "flax.linen.set_logical_axis_rules": "flax.core.spmd.set_logical_axis_rules",
    "flax.linen.partitioning.axis_rules": "nnx.logical_axis_rules",
    "flax.linen.partitioning.get_axis_rules": "flax.core.spmd.get_logical_axis_rules",
    "flax.linen.partitioning.set_axis_rules": "flax.core.spmd.set_logical_axis_rules",
    "flax.linen.meta.PARTITION_NAME": "nnx.PARTITION_NAME",
    "flax.linen.partitioning.ScanIn": "flax.typing.In",
}

# Boxes and functions of trees of boxes: flax.linen.x, flax.linen.meta.x (which is flax.core.meta).
BOXES = ("Partitioned", "unbox", "get_partition_spec", "get_sharding")
_META = (*BOXES, "AxisMetadata", "is_axis_metadata", "map_axis_meta", "replace_boxed")

# What ``nnx_migrate.sharding`` has under the same name, with the same arguments.
SAME_IN_SHIM = {
    "flax.linen.with_logical_constraint": "nnms.with_logical_constraint",
    "flax.linen.LogicallyPartitioned": "nnms.LogicallyPartitioned",
    **{f"flax.linen.{name}": f"nnms.{name}" for name in BOXES},
    **{f"flax.linen.meta.{name}": f"nnms.{name}" for name in _META},
    "flax.linen.logical_to_mesh": "nnms.logical_to_mesh",
    "flax.linen.logical_to_mesh_axes": "nnms.logical_to_mesh_axes",
    "flax.linen.logical_to_mesh_sharding": "nnms.logical_to_mesh_sharding",
    "flax.linen.partitioning.with_sharding_constraint": "nnms.with_logical_constraint",
    "flax.linen.partitioning.logical_to_mesh": "nnms.logical_to_mesh",
    "flax.linen.partitioning.logical_to_mesh_axes": "nnms.logical_to_mesh_axes",
    **{
        f"flax.linen.{home}RulesFallback{member}": f"nnms.RulesFallback{member}"
        for home in ("", "partitioning.")
        for member in ("", ".AXIS_IS_UNSHARDED", ".RAISE_ERROR", ".NO_CONSTRAINT")
    },
}

# Metadata of a variable: a name, several or None per dimension (nnx_migrate.sharding).
LOGICAL_AXES = "logical_axes"

_STATE = "nnx_migrate.sharding.construct_named_sharding(nnx.state(module), mesh)"

_RECIPES: Mapping[str, tuple[str, str]] = {
    "spmd": ("the module flax.linen.spmd", "name the function you need"),
    "meta": ("the module flax.core.meta through flax.linen", "import flax.core.meta"),
    "partitioning": ("the module flax.linen.partitioning", "name the function you need"),
    "partitioning.get_axis_names": ("axis names of variables", _STATE),
    **{
        f"partitioning.{kind}_with_axes": (
            "whose names of axes programs read from a collection of their own",
            "nn.with_logical_partitioning(init, axes), and metadata_params= of nn.scan or nn.vmap",
        )
        for kind in ("param", "variable", "scan", "vmap")
    },
    "partitioning.ScanOut": (
        "a marker of collections that a scan only makes",
        "let the body return the values",
    ),
    "partitioning.core_remat_static": ("an internal of flax's remat", "use jax.checkpoint"),
    "partitioning.AxisMetadata": ("a box of axis names in a collection", _STATE),
    "partitioning.PartitionedVariable": ("a variable with axis names", _STATE),
}

_UNCONSTRAINED = (
    "logical axis names stay on the parameter as metadata `logical_axes`; under a mesh Linen also "
    "constrains the parameter by them: shard the state with "
    "nnx_migrate.sharding.construct_named_sharding"
)


def _partitioning(symbol: str, _: Context) -> Code:
    return _code_to_review(dotted_node(f"nnm.{last(symbol)}"), "nnm")


def _code_to_review(node: Expression, root: str) -> Code:
    return Code(node, frozenset({root}), (_UNCONSTRAINED,), Confidence.REVIEW)


def _convert_logical(call: LayerCall) -> Code:
    """The initialiser with the names as metadata, where nothing but a variable is made of its value."""
    match call.call:
        case ast.Call(args=[init, ast.Tuple() as names], keywords=[]) if call.is_initializer:
            arguments = [call.source.argument(init), call.source.argument(names, LOGICAL_AXES)]
            left = call.comments_without([init, names])
            node = made_call("nnx.with_metadata", *arguments, left=left, unit=call.source.unit)
            return _code_to_review(node, "nnx")
    function = dotted_node(f"nnm.{last(call.symbol or '')}")
    return _code_to_review(same_call(function, call.call, call.source, keep_placement=True), "nnm")


CONSTRUCT = Construct(
    __doc__,
    rules=(
        CallRule(
            name="with_logical_partitioning",
            symbols=linen("with_logical_partitioning"),
            example=Example(
                "nn.Dense(8, kernel_init=nn.with_logical_partitioning(init, ('embed', 'mlp')))",
                "nnx.Linear(in_features, 8, kernel_init=nnx.with_metadata(init, logical_axes=('embed', 'mlp')), "
                "rngs=rngs)",
            ),
            convert=_convert_logical,
            reference=_partitioning,
        ),
        NameRule(
            name="with_partitioning",
            symbols=linen("with_partitioning", "meta.with_partitioning"),
            example=Example(
                "nn.with_partitioning(init, ('data', None))",
                "nnm.with_partitioning(init, ('data', None))",
            ),
            reference=_partitioning,
        ),
        NameRule(
            name="with_logical_constraint",
            symbols=frozenset(SAME_IN_SHIM),
            example=Example(
                "nn.with_logical_constraint(x, ('batch', 'embed'))",
                "nnms.with_logical_constraint(x, ('batch', 'embed'))",
            ),
            reference=table(SAME_IN_SHIM),
        ),
        NameRule(
            name="logical_axis_rules",
            symbols=frozenset(SAME_ELSEWHERE),
            example=Example("nn.logical_axis_rules(rules)", "nnx.logical_axis_rules(rules)"),
            reference=table(SAME_ELSEWHERE),
        ),
        RefusalRule(
            name="sharding",
            refusals={
                f"flax.linen.{name}": Refusal(f"nn.{name}, {reason}, is not rewritten", recipe)
                for name, (reason, recipe) in _RECIPES.items()
            },
            example=Example(
                "partitioning.get_axis_names(axes)",
                "refused: nnx_migrate.sharding.construct_named_sharding(nnx.state(module), mesh)",
            ),
        ),
    ),
    example="""
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        kernel_init = nn.with_logical_partitioning(nn.initializers.normal(0.1), ("embed", "mlp"))
        x = nn.Dense(16, kernel_init=kernel_init)(x)
        return nn.with_logical_constraint(x, ("batch", "mlp"))
""",
    inputs="jnp.ones((2, 8))",
    lazy=(
        """
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        names = partitioning.get_axis_names(self.variables)
        return nn.Dense(len(names))(x)
""",
    ),
)
