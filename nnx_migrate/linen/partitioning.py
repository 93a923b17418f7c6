"""Logical axis names kept in collections: the public names of ``flax.linen.partitioning`` (flax 0.12.8).

Flax's older way, beside ``spmd``: the names of a variable ``x`` of ``params`` are the variable ``x_axes`` of
``params_axes``.
"""

import functools
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Optional, Tuple  # noqa: UP035 - a name that flax's module has

import flax
import jax
from flax import struct
from flax.core.frozen_dict import freeze, unfreeze
from flax.core.scope import CollectionFilter, PRNGSequenceFilter
from flax.core.spmd import get_logical_axis_rules as get_axis_rules
from flax.core.spmd import logical_axis_rules as axis_rules
from flax.core.spmd import set_logical_axis_rules as set_axis_rules
from flax.traverse_util import flatten_dict, unflatten_dict
from flax.typing import (
    Array,
    ArrayPytree,
    InOutAxis,
    InOutScanAxis,
    LogicalPartitionSpec,
    LogicalPartitionSpecPytree,
    LogicalRules,
    PartitionSpecPytree,
)
from flax.typing import In as ScanIn
from flax.typing import Out as ScanOut

from nnx_migrate.linen.named_axes.metadata import AxisMetadata, get_axis_names
from nnx_migrate.linen.named_axes.metadata import map_metadata as _tree_map_axes
from nnx_migrate.linen.named_axes.metadata import same_names as _param_with_axes_sow_reduce_fn
from nnx_migrate.linen.named_axes.stacks import add_axis_to_metadata as _add_axis_to_metadata
from nnx_migrate.linen.named_axes.stacks import (
    core_remat_static,
    remat,
    scan_with_axes,
    vmap_with_axes,
)
from nnx_migrate.linen.named_axes.stacks import is_mutable as _is_mutable
from nnx_migrate.linen.named_axes.variables import (
    PartitionedVariable,
    param_with_axes,
    variable_with_axes,
)
from nnx_migrate.linen.named_axes.variables import (
    scope_variable_with_axes as _core_variable_with_axes,
)
from nnx_migrate.linen.spmd import (
    RulesFallback,
    _is_logical_spec,
    _with_sharding_constraint,
    logical_to_mesh,
    logical_to_mesh_axes,
)
from nnx_migrate.linen.spmd import with_logical_constraint as with_sharding_constraint

# flax's module has the whole package under this name; importing it here would be a circle.
nn = sys.modules["nnx_migrate.linen"]

__all__ = [
    "Any",
    "Array",
    "ArrayPytree",
    "AxisMetadata",
    "Callable",
    "CollectionFilter",
    "InOutAxis",
    "InOutScanAxis",
    "LogicalPartitionSpec",
    "LogicalPartitionSpecPytree",
    "LogicalRules",
    "Mapping",
    "Optional",
    "PRNGSequenceFilter",
    "PartitionSpecPytree",
    "PartitionedVariable",
    "RulesFallback",
    "ScanIn",
    "ScanOut",
    "Tuple",
    "_add_axis_to_metadata",
    "_core_variable_with_axes",
    "_is_logical_spec",
    "_is_mutable",
    "_param_with_axes_sow_reduce_fn",
    "_tree_map_axes",
    "_with_sharding_constraint",
    "axis_rules",
    "core_remat_static",
    "flatten_dict",
    "flax",
    "freeze",
    "functools",
    "get_axis_names",
    "get_axis_rules",
    "jax",
    "logical_to_mesh",
    "logical_to_mesh_axes",
    "nn",
    "param_with_axes",
    "re",
    "remat",
    "scan_with_axes",
    "set_axis_rules",
    "struct",
    "unflatten_dict",
    "unfreeze",
    "variable_with_axes",
    "vmap_with_axes",
    "with_sharding_constraint",
]
