"""Shardings of single leaves: composite values, keys, other memories, references."""

from __future__ import annotations

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding import construct_named_sharding, extract_named_sharding
from tests.sharding.meshes import mesh
from tests.sharding.variables import MESH, RULES, param, spec_of

P = PartitionSpec


@pytest.fixture(autouse=True)
def _constructed_without_a_mesh() -> Any:
    """Names are given without a mesh here, where NNX would want to shard at once."""
    with nnx.use_eager_sharding(False):
        yield


@flax.struct.dataclass
class Quantised:
    value: Any
    scale: Any
    zero: Any


def test_the_parts_of_a_composite_value_get_their_own_shardings() -> None:
    value = Quantised(jnp.zeros((8, 4), jnp.int8), jnp.ones((1, 4)), jnp.zeros(()))
    variable = param((), out_sharding=("embed", "mlp")).replace(value)
    found = construct_named_sharding({"x": variable}, mesh(**MESH), RULES)["x"].get_raw_value()
    assert isinstance(found, Quantised)
    assert (found.value.spec, found.scale.spec) == (P("fsdp", "expert"), P(None, "expert"))
    assert found.zero.spec == P()
    assert isinstance(extract_named_sharding({"x": nnx.Param(found)})["x"], Quantised)


def test_a_composite_value_keeps_its_containers_where_stock_nnx_loses_them() -> None:
    pair = nnx.Param((jnp.zeros((8, 4)), jnp.ones((1, 4))), out_sharding=("fsdp", "expert"))
    state = {"x": pair}
    stock = nnx.get_named_sharding(state, mesh(**MESH))
    assert jax.tree.structure(stock) != jax.tree.structure(state)
    found = construct_named_sharding(state, mesh(**MESH))
    assert jax.tree.structure(found) == jax.tree.structure(state)


def test_prng_keys_and_counts_are_replicated() -> None:
    found = construct_named_sharding(nnx.state(nnx.Rngs(0)), mesh(**MESH), RULES)
    leaves = jax.tree.leaves(found)
    assert len(leaves) == 2
    assert {leaf.spec for leaf in leaves} == {P()}
    keys = nnx.RngKey(jax.random.split(jax.random.key(0), 4), tag="x", out_sharding=("embed",))
    assert spec_of(keys) == P("fsdp")


def test_memory_kinds_are_kept() -> None:
    devices = mesh(**MESH)
    host = NamedSharding(devices, P(), memory_kind="pinned_host")
    offloaded = param((8,), out_sharding=("embed",)).replace(jax.device_put(jnp.ones(8), host))
    abstract = nnx.Param(jax.ShapeDtypeStruct((8,), float, sharding=host))
    found = construct_named_sharding(
        {"a": offloaded, "b": abstract, "c": param((8,))}, devices, RULES
    )
    a, b, c = (found[key].get_raw_value() for key in "abc")
    assert (a.spec, a.memory_kind) == (P("fsdp"), "pinned_host")
    assert b.memory_kind == "pinned_host"
    assert c.memory_kind == NamedSharding(devices, P()).memory_kind


def test_a_variable_that_is_a_reference_will_do_and_a_hijax_one_is_refused() -> None:
    assert spec_of(nnx.Param(jnp.ones(8), ref=True, out_sharding=("embed",))) == P("fsdp")
    with pytest.raises(TypeError, match="x: expected a plain Variable, found one with hijax"):
        spec_of(nnx.Param(jnp.ones(8), hijax=True, out_sharding=("embed",)))
