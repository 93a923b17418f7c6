"""Bytes per device, and how much of a state is not sharded."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from nnx_migrate.sharding import check_sharded, memory_report

P = PartitionSpec
MESH = AbstractMesh((2, 4, 1), ("data", "fsdp", "one"), axis_types=(AxisType.Auto,) * 3)


def array(
    shape: tuple[int, ...], spec: PartitionSpec, dtype: str = "float32"
) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, spec))


STATE = {
    "embed": array((8, 16), P(None, "fsdp")),
    "scale": array((16,), P("one"), "bfloat16"),
    "wi": array((8, 16), P(("data", "fsdp"))),
    "wo": array((16, 4), P("data")),
}


def test_each_array_counts_its_bytes_and_those_on_a_device() -> None:
    found = memory_report(STATE)
    assert [(one.path, one.total, one.per_device, one.sharded) for one in found.arrays] == [
        ("embed", 512, 128, True),
        ("scale", 32, 32, False),
        ("wi", 512, 64, True),
        ("wo", 256, 128, False),
    ]
    assert (found.total, found.per_device) == (1312, 352)


def test_unsharded_bytes_are_divided_by_bytes() -> None:
    found = memory_report(STATE)
    assert [one.path for one in found.unsharded] == ["wo", "scale"]
    assert found.unsharded_bytes == 288
    assert found.unsharded_share == 288 / 1312
    assert found.over == ("fsdp", "one")


def test_the_axes_that_count_can_be_chosen() -> None:
    found = memory_report(STATE, over=("data",))
    assert [one.path for one in found.unsharded] == ["embed", "scale"]
    assert memory_report(STATE, over="data") == found


def test_shardings_may_come_apart_from_the_arrays_and_in_variables() -> None:
    model = nnx.eval_shape(lambda: nnx.Linear(8, 4, rngs=nnx.Rngs(0)))
    state = nnx.state(model)
    shardings = jax.tree.map(lambda _: NamedSharding(MESH, P("fsdp")), state)
    found = memory_report(state, shardings)
    assert [(one.total, one.per_device) for one in found.arrays] == [(16, 4), (128, 32)]


def test_keys_have_bytes_too() -> None:
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 4))
    found = memory_report([keys], [NamedSharding(MESH, P("fsdp"))])
    assert (found.total, found.per_device) == (32, 8)


def test_an_array_without_a_sharding_is_refused() -> None:
    with pytest.raises(TypeError, match="a: expected a NamedSharding, found None"):
        memory_report({"a": jax.ShapeDtypeStruct((2,), jnp.float32)})


def test_a_dimension_its_axes_do_not_divide_is_refused_with_the_path() -> None:
    with pytest.raises(ValueError, match=r"a: .*dimension size is 6"):
        memory_report(
            {"a": jax.ShapeDtypeStruct((6,), "float32")}, {"a": NamedSharding(MESH, P("fsdp"))}
        )


def test_enough_is_sharded() -> None:
    check_sharded(memory_report(STATE), most=0.22)


def test_too_little_is_sharded_by_bytes_though_not_by_elements_over_bytes() -> None:
    """80 elements by 1312 bytes would be 6 %; 288 bytes of them are 22 %."""
    with pytest.raises(ValueError, match=r"found 21\.95% \(288 of 1312\):\n  wo \(16, 4\): 256"):
        check_sharded(memory_report(STATE), most=0.10)


def test_nothing_to_check_is_refused() -> None:
    with pytest.raises(ValueError, match="found none"):
        check_sharded(memory_report({}), most=1.0)
