"""Lifted transforms: jax transforms of module classes, of their methods, of functions of modules.

The public names of ``flax.linen.transforms`` (flax 0.12.8), with its signatures and semantics.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from flax.core.scope import CollectionFilter, PRNGSequenceFilter
from flax.typing import InOutAxis, InOutScanAxis

from nnx_migrate.linen.core.module import Module
from nnx_migrate.linen.core.wrapping import wrap_method_once
from nnx_migrate.linen.lifts.branches import cond, switch
from nnx_migrate.linen.lifts.custom_vjp import custom_vjp
from nnx_migrate.linen.lifts.fingerprint import HashableProxy as _HashableProxy
from nnx_migrate.linen.lifts.gradients import grad, jvp, value_and_grad, vjp
from nnx_migrate.linen.lifts.jit import fold_rngs, jit
from nnx_migrate.linen.lifts.map_variables import add_metadata_axis, map_variables
from nnx_migrate.linen.lifts.named_call import named_call
from nnx_migrate.linen.lifts.remat import checkpoint, remat
from nnx_migrate.linen.lifts.remat_scan import remat_scan
from nnx_migrate.linen.lifts.scan import scan
from nnx_migrate.linen.lifts.targets import (
    lift_direct_transform,
    lift_transform,
    lift_transform_cached,
)
from nnx_migrate.linen.lifts.vmap import vmap
from nnx_migrate.linen.lifts.while_loop import while_loop

TransformTarget = type[Module] | Callable[..., Any]
Target = TypeVar("Target", bound=TransformTarget)  # of functions that hand on what a lift takes

__all__ = [
    "CollectionFilter",
    "InOutAxis",
    "InOutScanAxis",
    "Module",
    "PRNGSequenceFilter",
    "Target",
    "TransformTarget",
    "_HashableProxy",
    "add_metadata_axis",
    "checkpoint",
    "cond",
    "custom_vjp",
    "fold_rngs",
    "grad",
    "jit",
    "jvp",
    "lift_direct_transform",
    "lift_transform",
    "lift_transform_cached",
    "map_variables",
    "named_call",
    "remat",
    "remat_scan",
    "scan",
    "switch",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
    "wrap_method_once",
]
