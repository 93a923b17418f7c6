"""Sharding by logical axis names in NNX, as Linen did it. Imports nothing from ``flax.linen``."""

from nnx_migrate.sharding.axis_rules import (
    AxisRules,
    axis_rule_names,
    first_axes,
    load_axis_rules,
    merge_rules,
)
from nnx_migrate.sharding.compare import (
    SpecComparison,
    SpecDifference,
    canonical_spec,
    compare_specs,
)
from nnx_migrate.sharding.edit import (
    add_data_to_sharding,
    remove_axes,
    remove_fsdp,
    shard_over_data,
)
from nnx_migrate.sharding.memory import ArrayBytes, MemoryReport, check_sharded, memory_report
from nnx_migrate.sharding.pipeline import (
    pipeline_as_data,
    pipeline_as_data_rules,
    shard_dim_by_stages,
)
from nnx_migrate.sharding.resolve import Resolution, explain_spec, resolve_spec
from nnx_migrate.sharding.rules_file import AxisRulesError, RuleFinding
from nnx_migrate.sharding.silent import (
    AxesDropped,
    NameUnmatched,
    RuleLost,
    SilentResolutionError,
)

__all__ = [
    "ArrayBytes",
    "AxesDropped",
    "AxisRules",
    "AxisRulesError",
    "MemoryReport",
    "NameUnmatched",
    "Resolution",
    "RuleFinding",
    "RuleLost",
    "SilentResolutionError",
    "SpecComparison",
    "SpecDifference",
    "add_data_to_sharding",
    "axis_rule_names",
    "canonical_spec",
    "check_sharded",
    "compare_specs",
    "explain_spec",
    "first_axes",
    "load_axis_rules",
    "memory_report",
    "merge_rules",
    "pipeline_as_data",
    "pipeline_as_data_rules",
    "remove_axes",
    "remove_fsdp",
    "resolve_spec",
    "shard_dim_by_stages",
    "shard_over_data",
]
