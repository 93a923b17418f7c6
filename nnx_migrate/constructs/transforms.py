"""Lifted transformations, scope tools and wrappers without an explicit form: their classes are lazy.

Linen lifts ``jax`` transformations over a module's variables and rngs by collection and stream name;
NNX has ``nnx.scan``, ``nnx.vmap``, ... over modules, with the stacking said per state filter. Which
filters a Linen call means depends on the variables of the class it is applied to.

flax 0.12.8 and 0.12.12: linen/transforms.py, nnx/transforms/.
"""

from __future__ import annotations

from collections.abc import Mapping

from nnx_migrate.constructs.common.base import Refusal
from nnx_migrate.constructs.common.rules import Construct, Example, RefusalRule

_RECIPES: Mapping[str, tuple[str, str]] = {
    "add_metadata_axis": (
        "add_metadata_axis",
        "pass transform_metadata={nnx.PARTITION_NAME: name} to nnx.vmap or nnx.scan",
    ),
    "jit": ("nn.jit, which compiles calls of a module on their own,", "jit the caller's function"),
    "map_variables": (
        "map_variables",
        "store what the call computes with, or map in the call: self.dense.kernel[...] * scale",
    ),
    "remat_scan": ("remat_scan", "write nn.scan of nn.remat of the class"),
    **{name: (name, f"use nnx.{name}") for name in ("cond", "switch", "while_loop")},
    **{
        name: (name, f"use nnx.{name}, with the state to differentiate as an argument")
        for name in ("custom_vjp", "grad", "jvp", "value_and_grad", "vjp")
    },
    **{
        name: (name, "normalise the layer's kernel in the call, its statistics in a variable")
        for name in ("SpectralNorm", "WeightNorm")
    },
    "fold_rngs": ("fold_rngs", "fold the key of each stream by hand with jax.random.fold_in"),
    "share_scope": (
        "share_scope",
        "give the submodule a scope of its own, or write its parameters into this class",
    ),
    "transforms": ("the module flax.linen.transforms", "name the function you need from flax.nnx"),
}

CONSTRUCT = Construct(
    __doc__,
    rules=(
        RefusalRule(
            name="transforms",
            refusals={
                f"flax.linen.{name}": Refusal(f"{reason} is not rewritten", recipe)
                for name, (reason, recipe) in _RECIPES.items()
            },
            example=Example(
                "nn.fold_rngs(Layer)",
                "refused: fold the key of each stream by hand with jax.random.fold_in",
            ),
        ),
    ),
    lazy=(
        """
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.WeightNorm(nn.Dense(8))(x)
""",
        """
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        dense = nn.Dense(8)
        return nn.jit(lambda module, x: module(x))(dense, x)
""",
    ),
)
