"""Models created sharded, by Linen's resolution."""

from __future__ import annotations

import threading
from typing import Any

import flax.core.spmd
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from nnx_migrate import nn as nnm
from nnx_migrate.sharding import (
    abstract_sharded,
    construct_named_sharding,
    create_sharded,
    linen_sharding,
)
from nnx_migrate.sharding.creation import sharded_initialiser
from tests.sharding.meshes import AUTO, EXPLICIT, abstract_mesh, mesh

P = PartitionSpec
RULES = (("embed", "fsdp"), ("mlp", "expert"), ("mlp", "fsdp"), ("embed", "expert"))
MESH = {"fsdp": 4, "expert": 2}
KINDS = [AUTO, EXPLICIT]


class Model(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        init = nnx.initializers.lecun_normal()
        named = nnm.with_logical_partitioning(init, ("mlp", "embed"))
        self.wi = nnx.Linear(64, 128, kernel_metadata={"out_sharding": ("embed", "mlp")}, rngs=rngs)
        self.wo = nnx.Linear(128, 64, kernel_init=named, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)


def build() -> Model:
    return Model(rngs=nnx.Rngs(0))


def kernel_spec(names: Any, rules: Any = RULES, **metadata: Any) -> PartitionSpec:
    with linen_sharding(rules):
        spec: PartitionSpec = nnx.Param(
            jnp.ones((8, 8)), out_sharding=names, **metadata
        ).sharding.spec
        return spec


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("embed", "mlp"), P("fsdp", "expert")),
        (("mlp", "embed"), P("expert", "fsdp")),
        (("embed", "unknown"), P("fsdp", None)),
        ("embed", P("fsdp")),
        (P("expert", "fsdp"), P("expert", "fsdp")),
    ],
)
def test_parameters_are_sharded_by_linens_resolution(
    kind: AxisType, names: Any, expected: PartitionSpec
) -> None:
    with jax.set_mesh(mesh(kind, **MESH)):
        found = kernel_spec(names)
    assert tuple(found)[: len(expected)] == tuple(expected)
    assert set(found[len(expected) :]) <= {None}
    if not isinstance(names, P):
        listed = (names,) if isinstance(names, str) else names
        assert expected == linen.logical_to_mesh_axes(listed, RULES)


@pytest.mark.parametrize(
    ("names", "rules", "stock"),
    [
        (("embed", "unknown"), RULES, "unknown"),  # leaks
        (("embed", "mlp"), (("embed", "fsdp"), ("mlp", "fsdp")), "fsdp"),  # crashes
    ],
)
def test_stock_nnx_refuses_what_linen_resolves(names: Any, rules: Any, stock: str) -> None:
    with jax.set_mesh(mesh(**MESH)):
        with nnx.logical_axis_rules(rules), pytest.raises(Exception, match=stock):
            nnx.Param(jnp.ones((8, 8)), out_sharding=names)
        expected = linen.logical_to_mesh_axes(names, rules)
        assert kernel_spec(names, rules) == expected


def test_stock_nnx_takes_the_last_rule_where_linen_takes_the_first() -> None:
    rules = (("embed", "fsdp"), ("embed", "expert"))
    with jax.set_mesh(mesh(**MESH)):
        with nnx.logical_axis_rules(rules):
            assert nnx.Param(jnp.ones((8, 8)), out_sharding=("embed",)).sharding.spec[0] == "expert"
        assert kernel_spec(("embed",), rules)[0] == "fsdp"


@pytest.mark.parametrize("kind", KINDS)
def test_constructors_shard_as_construct_named_sharding_says(kind: AxisType) -> None:
    devices = mesh(kind, **MESH)
    with linen_sharding(RULES, devices):
        model = build()
    expected = construct_named_sharding(nnx.state(model), devices, RULES)
    assert model.wi.kernel.sharding == expected["wi"]["kernel"].get_raw_value()
    assert model.wi.kernel.sharding.spec == P("fsdp", "expert")


@pytest.mark.parametrize("kind", KINDS)
def test_abstract_construction_under_an_abstract_mesh(kind: AxisType) -> None:
    large = abstract_mesh(kind, fsdp=32, expert=16)
    with jax.sharding.use_abstract_mesh(large), linen_sharding(RULES):
        model = nnx.eval_shape(build)
    assert model.wi.kernel.get_raw_value().sharding == NamedSharding(large, P("fsdp", "expert"))


def test_the_specs_nnx_gives_are_linens_too() -> None:
    with nnx.use_eager_sharding(False):
        state = nnx.state(build())
    with linen_sharding(RULES):
        specs = nnx.get_partition_spec(state)
    assert specs["wi"]["kernel"].get_raw_value() == P("fsdp", "expert")
    with linen_sharding(RULES, mesh(fsdp=4, expert=1)):
        specs = nnx.get_partition_spec(state)
    assert specs["wi"]["kernel"].get_raw_value() == P("fsdp", None)
    assert specs["wi"]["bias"].get_raw_value() == P()


def test_without_a_mesh_names_are_only_kept() -> None:
    with pytest.raises(ValueError, match="mesh context or metadata is required"):  # stock NNX
        nnx.Param(jnp.ones((8, 8)), out_sharding=("embed", "mlp"))
    with linen_sharding(RULES):
        parameter = nnx.Param(jnp.ones((8, 8)), out_sharding=("embed", "mlp"))
    assert parameter.out_sharding == ("embed", "mlp")
    assert parameter.sharding == jnp.ones(3).sharding


def test_metadata_and_values_are_those_of_stock_nnx() -> None:
    plain = (("embed", "fsdp"), ("mlp", "expert"))
    with jax.set_mesh(mesh(**MESH)):
        with nnx.logical_axis_rules(plain):
            stock = nnx.state(build())
        with linen_sharding(plain):
            ours = nnx.state(build())
    assert jax.tree.structure(ours) == jax.tree.structure(stock)
    ours, stock = nnx.state(ours, nnx.Param), nnx.state(stock, nnx.Param)
    jax.tree.map(np.testing.assert_array_equal, ours, stock)


def test_rules_of_the_variable_and_its_own_mesh_count() -> None:
    with jax.set_mesh(mesh(**MESH)):
        own = kernel_spec(("embed", "mlp"), sharding_rules=(("embed", "expert"),))
        assert own == P("expert", "fsdp")
    other = mesh(fsdp=2)
    with linen_sharding(RULES):
        parameter = nnx.Param(jnp.ones((8, 8)), out_sharding=("embed",), mesh=other)
        given = NamedSharding(other, P(None, "fsdp"))
        resolved = nnx.Param(jnp.ones((8, 8)), out_sharding=given)
    assert parameter.sharding.is_equivalent_to(NamedSharding(other, P("fsdp")), 2)
    assert resolved.sharding.is_equivalent_to(given, 2)


def test_composite_values_are_sharded_part_by_part() -> None:
    with linen_sharding(RULES, mesh(**MESH)):
        pair = nnx.Param((jnp.ones((8, 8)), jnp.ones((1, 8))), out_sharding=("embed", "mlp"))
    assert [x.sharding.spec for x in jax.tree.leaves(pair)] == [
        P("fsdp", "expert"),
        P(None, "expert"),
    ]


def test_sizes_that_do_not_divide_are_refused_or_dropped() -> None:
    with jax.set_mesh(mesh(**MESH)):
        with linen_sharding(RULES), pytest.raises(ValueError, match="divisible by 4"):
            nnx.Param(jnp.ones((6, 8)), out_sharding=("embed", "mlp"))
        with linen_sharding(RULES, misfit="drop"):
            parameter = nnx.Param(jnp.ones((6, 8)), out_sharding=("embed", "mlp"))
    assert parameter.sharding.spec == P(None, "expert")


class Oops(Exception):
    pass


def fail_inside() -> None:
    with linen_sharding((("embed", "expert"),)):
        assert kernel_spec(("embed",), None)[0] == "expert"
        raise Oops


def test_everything_is_put_back() -> None:
    original = flax.core.spmd.shard_value
    with linen_sharding(RULES, mesh(**MESH)):
        ours = flax.core.spmd.shard_value
        assert ours is not original
        with pytest.raises(Oops):
            fail_inside()
        assert flax.core.spmd.shard_value is ours
        assert kernel_spec(("embed",), None)[0] == "fsdp"
    assert flax.core.spmd.shard_value is original
    assert flax.core.spmd.get_logical_axis_rules() == ()
    assert jax.sharding.get_abstract_mesh().empty


def test_other_threads_shard_as_stock_nnx_does() -> None:
    rules = (("embed", "fsdp"), ("embed", "expert"))
    original = flax.core.spmd.shard_value
    found: dict[str, Any] = {}
    entered, done = threading.Event(), threading.Event()

    def stock() -> None:
        entered.wait(30)
        with jax.set_mesh(mesh(**MESH)), nnx.logical_axis_rules(rules):
            found["stock"] = nnx.Param(jnp.ones(8), out_sharding=("embed",)).sharding.spec
        done.set()

    def ours(name: str) -> None:
        with linen_sharding(rules, mesh(**MESH)):
            entered.set()
            done.wait(30)
            found[name] = nnx.Param(jnp.ones(8), out_sharding=("embed",)).sharding.spec

    threads = [threading.Thread(target=stock)]
    threads += [threading.Thread(target=ours, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {"stock": P("expert"), "a": P("fsdp"), "b": P("fsdp")}
    assert flax.core.spmd.shard_value is original


@pytest.mark.parametrize("kind", KINDS)
def test_a_created_model_is_the_eager_one_in_shards(kind: AxisType) -> None:
    devices = mesh(kind, **MESH)
    model = create_sharded(build, devices, RULES)
    state = nnx.state(model)
    expected = construct_named_sharding(state, devices, RULES)
    for x, sharding in zip(jax.tree.leaves(state), jax.tree.leaves(expected), strict=True):
        assert x.sharding.is_equivalent_to(sharding, x.ndim)
    assert state["wo"]["kernel"].sharding.spec == P("expert", "fsdp")
    assert state["wi"]["kernel"].addressable_shards[0].data.shape == (16, 64)
    with linen_sharding(RULES):
        eager = jax.jit(lambda: nnx.state(build(), nnx.Param))()
    jax.tree.map(np.testing.assert_array_equal, nnx.state(model, nnx.Param), eager)
    with jax.set_mesh(devices):
        assert model.wi(jnp.ones((2, 64))).shape == (2, 128)


@pytest.mark.parametrize("kind", KINDS)
def test_no_device_ever_holds_the_unsharded_model(kind: AxisType) -> None:
    def large() -> nnx.Linear:
        metadata = {"out_sharding": ("embed", "mlp")}
        return nnx.Linear(1024, 1024, kernel_metadata=metadata, rngs=nnx.Rngs(0))

    whole, devices = 4 * 1024 * 1024, mesh(kind, **MESH)
    _, initialise, _ = sharded_initialiser(large, devices, RULES)
    memory = initialise.lower().compile().memory_analysis()
    assert whole / 8 <= memory.output_size_in_bytes < whole / 8 + 2**14
    # The bits that are drawn and the floats made of them: a few shards, never the whole.
    assert memory.output_size_in_bytes + memory.temp_size_in_bytes < 0.6 * whole
    with linen_sharding():  # the measure sees an unsharded model
        memory = jax.jit(lambda: nnx.state(large())).lower().compile().memory_analysis()
    assert memory.output_size_in_bytes >= whole


@pytest.mark.parametrize("kind", KINDS)
def test_an_optimizer_is_created_sharded_too(kind: AxisType) -> None:
    def pair() -> Any:
        model = build()
        return nnx.Dict(
            model=model, optimizer=nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
        )

    created = create_sharded(pair, mesh(kind, **MESH), RULES)
    moments = nnx.state(created)["optimizer"]["opt_state"][0]["mu"]
    assert moments["wi"]["kernel"].sharding.spec == P("fsdp", "expert")
    assert moments["wo"]["kernel"].sharding.spec == P("expert", "fsdp")


def test_abstract_models_know_their_shardings_on_any_mesh() -> None:
    large = abstract_mesh(fsdp=32, expert=16)
    graphdef, state = abstract_sharded(build, large, RULES)
    assert state["wi"]["kernel"].get_raw_value().sharding == NamedSharding(
        large, P("fsdp", "expert")
    )
    assert state["wi"]["bias"].get_raw_value().sharding == NamedSharding(large, P())
    assert isinstance(nnx.merge(graphdef, state), Model)
    with pytest.raises(TypeError, match="expected a mesh with devices, found AbstractMesh"):
        create_sharded(build, large, RULES)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_do_not_divide_are_refused_with_their_path(kind: AxisType) -> None:
    def odd() -> nnx.Linear:
        metadata = {"out_sharding": ("embed", "mlp")}
        return nnx.Linear(6, 3, kernel_metadata=metadata, rngs=nnx.Rngs(0))

    with pytest.raises(ValueError, match=r"^kernel: expected a size divisible by 4"):
        create_sharded(odd, mesh(kind, **MESH), RULES)
    kernel = create_sharded(odd, mesh(kind, **MESH), RULES, misfit="drop").kernel
    assert kernel.sharding.is_fully_replicated


@pytest.mark.parametrize("kind", KINDS)
def test_resolved_shardings_are_used_as_they_are(kind: AxisType) -> None:
    devices = mesh(kind, **MESH)
    given = NamedSharding(devices, P("expert", "fsdp"))

    def resolved() -> nnx.Linear:
        return nnx.Linear(8, 8, kernel_metadata={"out_sharding": given}, rngs=nnx.Rngs(0))

    assert create_sharded(resolved, devices, RULES).kernel.sharding == given


def test_one_device_will_do() -> None:
    model = create_sharded(build, mesh(fsdp=1), RULES)
    assert model.wi.kernel.sharding.spec == P(None, None)
    assert model.wi(jnp.ones((2, 64))).shape == (2, 128)
