"""Variables with metadata of their own, and the specs they get on a mesh ``fsdp:4, expert:2``."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding import construct_named_sharding
from tests.sharding.meshes import mesh

RULES = (("embed", "fsdp"), ("mlp", "expert"), ("mlp", "fsdp"), ("heads", "expert"))
MESH = {"fsdp": 4, "expert": 2}


def param(shape: tuple[int, ...], **metadata: Any) -> nnx.Param[Any]:
    """A parameter with exactly this metadata: NNX renames old keys when it constructs."""
    variable = nnx.Param(jnp.zeros(shape))
    return nnx.Param.from_metadata(variable.get_raw_value(), variable.get_metadata() | metadata)


def spec_of(variable: Any, rules: Any = RULES, **options: Any) -> PartitionSpec:
    found = construct_named_sharding({"x": variable}, mesh(**MESH), rules, **options)
    sharding: NamedSharding = found["x"].get_raw_value()
    assert sharding.mesh == mesh(**MESH)
    return sharding.spec
