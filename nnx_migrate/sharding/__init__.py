"""Sharding by logical axis names in NNX, as Linen did it. Imports nothing from ``flax.linen``."""

from nnx_migrate.sharding.axis_rules import (
    AxisRules,
    axis_rule_names,
    first_axes,
    load_axis_rules,
    merge_rules,
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
    "AxesDropped",
    "AxisRules",
    "AxisRulesError",
    "NameUnmatched",
    "Resolution",
    "RuleFinding",
    "RuleLost",
    "SilentResolutionError",
    "axis_rule_names",
    "explain_spec",
    "first_axes",
    "load_axis_rules",
    "merge_rules",
    "resolve_spec",
]
