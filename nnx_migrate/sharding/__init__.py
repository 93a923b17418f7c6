"""Sharding by logical axis names in NNX, as Linen did it. Imports nothing from ``flax.linen``."""

from nnx_migrate.sharding.axis_rules import (
    AxisRules,
    axis_rule_names,
    first_axes,
    load_axis_rules,
    merge_rules,
)
from nnx_migrate.sharding.boxes import (
    AxisMetadata,
    LogicallyPartitioned,
    Partitioned,
    boxed,
    get_partition_spec,
    get_sharding,
    is_axis_metadata,
    map_axis_meta,
    replace_boxed,
    unbox,
)
from nnx_migrate.sharding.compare import (
    SpecComparison,
    SpecDifference,
    canonical_spec,
    compare_specs,
)
from nnx_migrate.sharding.constraints import RulesFallback, constrain
from nnx_migrate.sharding.context import linen_sharding
from nnx_migrate.sharding.creation import abstract_sharded, create_sharded
from nnx_migrate.sharding.describe import (
    DescribedSharding,
    describe_shardings,
    silent_losses,
)
from nnx_migrate.sharding.edit import (
    add_data_to_sharding,
    remove_axes,
    remove_fsdp,
    shard_over_data,
)
from nnx_migrate.sharding.linen_names import (
    logical_to_mesh,
    logical_to_mesh_axes,
    logical_to_mesh_sharding,
    with_logical_constraint,
)
from nnx_migrate.sharding.listing import unannotated
from nnx_migrate.sharding.memory import ArrayBytes, MemoryReport, check_sharded, memory_report
from nnx_migrate.sharding.named_shardings import construct_named_sharding, extract_named_sharding
from nnx_migrate.sharding.pipeline import (
    pipeline_as_data,
    pipeline_as_data_rules,
    shard_dim_by_stages,
)
from nnx_migrate.sharding.reshard import reshard_like
from nnx_migrate.sharding.resolve import Resolution, explain_spec, resolve_spec
from nnx_migrate.sharding.rules_file import AxisRulesError, RuleFinding
from nnx_migrate.sharding.scan_axis import ScanAxis
from nnx_migrate.sharding.silent import (
    AxesDropped,
    NameUnmatched,
    RuleLost,
    SilentResolutionError,
)
from nnx_migrate.sharding.stacks import (
    in_stack,
    record_scan_axis,
    remove_scan_axis,
    restore_scan_axis,
)

__all__ = [
    "ArrayBytes",
    "AxesDropped",
    "AxisMetadata",
    "AxisRules",
    "AxisRulesError",
    "DescribedSharding",
    "LogicallyPartitioned",
    "MemoryReport",
    "NameUnmatched",
    "Partitioned",
    "Resolution",
    "RuleFinding",
    "RuleLost",
    "RulesFallback",
    "ScanAxis",
    "SilentResolutionError",
    "SpecComparison",
    "SpecDifference",
    "abstract_sharded",
    "add_data_to_sharding",
    "axis_rule_names",
    "boxed",
    "canonical_spec",
    "check_sharded",
    "compare_specs",
    "constrain",
    "construct_named_sharding",
    "create_sharded",
    "describe_shardings",
    "explain_spec",
    "extract_named_sharding",
    "first_axes",
    "get_partition_spec",
    "get_sharding",
    "in_stack",
    "is_axis_metadata",
    "linen_sharding",
    "load_axis_rules",
    "logical_to_mesh",
    "logical_to_mesh_axes",
    "logical_to_mesh_sharding",
    "map_axis_meta",
    "memory_report",
    "merge_rules",
    "pipeline_as_data",
    "pipeline_as_data_rules",
    "record_scan_axis",
    "remove_axes",
    "remove_fsdp",
    "remove_scan_axis",
    "replace_boxed",
    "reshard_like",
    "resolve_spec",
    "restore_scan_axis",
    "shard_dim_by_stages",
    "shard_over_data",
    "silent_losses",
    "unannotated",
    "unbox",
    "with_logical_constraint",
]
