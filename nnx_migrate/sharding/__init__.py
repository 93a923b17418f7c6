"""Sharding by logical axis names in NNX, as Linen did it. Imports nothing from ``flax.linen``."""

from nnx_migrate.sharding.resolve import Resolution, explain_spec, resolve_spec
from nnx_migrate.sharding.silent import (
    AxesDropped,
    NameUnmatched,
    RuleLost,
    SilentResolutionError,
)

__all__ = [
    "AxesDropped",
    "NameUnmatched",
    "Resolution",
    "RuleLost",
    "SilentResolutionError",
    "explain_spec",
    "resolve_spec",
]
