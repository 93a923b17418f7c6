"""Taking mesh axes out of specs, and adding the data axis for ZeRO-1."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from nnx_migrate.sharding import (
    add_data_to_sharding,
    load_axis_rules,
    remove_axes,
    remove_fsdp,
    resolve_spec,
    shard_over_data,
)
from tests.sharding.recordings import FILES, recorded

P = PartitionSpec
AUTO = (AxisType.Auto,) * 4
MESH = AbstractMesh((2, 4, 2, 1), ("data", "fsdp", "tensor", "one"), axis_types=AUTO)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (P("fsdp"), P(None)),
        (P(("fsdp", "expert"), "tensor"), P("expert", "tensor")),
        (P(("data", "fsdp", "fsdp_transpose", "expert")), P(("data", "expert"))),
        (P(("fsdp", "fsdp_transpose"), None), P(None, None)),
        (P("tensor", None), P("tensor", None)),
        (P(), P()),
        (P("fsdp", reduced={"data"}), P(None, reduced={"data"})),
    ],
)
def test_fsdp_leaves_a_spec(spec: PartitionSpec, expected: PartitionSpec) -> None:
    assert remove_fsdp(spec) == expected


def test_only_the_dimensions_asked_for_change() -> None:
    spec = P("fsdp", ("fsdp", "tensor"), P.UNCONSTRAINED)
    assert remove_axes(spec, {"fsdp"}, dims=(1,)) == P("fsdp", "tensor", P.UNCONSTRAINED)


def test_one_axis_is_that_axis_and_not_its_letters() -> None:
    assert remove_axes(P("fsdp", "f", ("s", "fsdp")), "fsdp") == P(None, "f", "s")


def test_dimensions_counted_from_the_end_are_refused() -> None:
    """A spec may be shorter than the rank, so its last entry is not the last dimension's."""
    with pytest.raises(ValueError, match=r"counted from the front, found \[-1, 0\]"):
        remove_fsdp(P("fsdp", "tensor"), dims=(0, -1))


def test_an_unconstrained_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="found UNCONSTRAINED in P"):
        remove_fsdp(P("fsdp", P.UNCONSTRAINED))


def test_shardings_keep_their_mesh_and_memory_and_the_tree_its_variables() -> None:
    sharding = NamedSharding(MESH, P("fsdp", "tensor"), memory_kind="pinned_host")
    changed = remove_fsdp({"a": nnx.Param(sharding, note=1), "b": [P("fsdp")]})
    assert isinstance(changed["a"], nnx.Param)
    assert changed["a"].get_metadata()["note"] == 1
    expected = NamedSharding(MESH, P(None, "tensor"), memory_kind="pinned_host")
    assert changed["a"].get_raw_value() == expected
    assert changed["b"] == [P(None)]


def test_a_leaf_that_is_no_sharding_is_refused() -> None:
    with pytest.raises(TypeError, match="found str: 'fsdp'"):
        remove_fsdp({"a": "fsdp"})


@pytest.mark.parametrize("file", [file for file in FILES if file.startswith("deepseek")])
def test_expert_kernels_inside_the_sparse_path_are_recorded_without_fsdp(file: str) -> None:
    """The record has no names for these; the arrays' own names and the removal give its specs."""
    here = recorded(file)
    rules = load_axis_rules(here.rules).logical_axis_rules
    names = {
        "w0_kernel": ("exp", "embed_moe", "mlp_moe"),
        "wo_kernel": ("exp", "mlp_moe", "embed_moe"),
    }
    names["w1_kernel"] = names["w0_kernel"]
    found = {}
    for row in here.activations:
        _, where, kernel, _ = row.name.split("/")
        if where == "moe" and kernel in names:
            found[kernel] = remove_fsdp(resolve_spec(names[kernel], rules, here.mesh)), row.spec
    assert found.keys() == names.keys()
    for kernel, (ours, theirs) in found.items():
        assert ours == theirs, kernel


ZERO: dict[str, tuple[PartitionSpec, tuple[int, ...], PartitionSpec]] = {
    "the first dimension": (P(), (8, 8), P("data", None)),
    "before the axes it has": (P("fsdp", None), (8, 8), P(("data", "fsdp"), None)),
    "by the size of a shard, not of the array": (P("fsdp", None), (4, 8), P("fsdp", "data")),
    "not where tensor is": (P("tensor", None), (8, 8), P("tensor", "data")),
    "not where tensor is among others": (
        P(("fsdp", "tensor")),
        (16, 8),
        P(("fsdp", "tensor"), "data"),
    ),
    "not where jax may choose": (P(P.UNCONSTRAINED), (8, 8), P(P.UNCONSTRAINED, "data")),
    "nowhere divisible": (P("fsdp"), (4, 3), P("fsdp")),
    "a scalar": (P(), (), P()),
    "padded to the rank": (P("fsdp"), (4, 3, 2), P("fsdp", None, "data")),
    "cut to the rank": (P("fsdp", None, None), (8,), P(("data", "fsdp"))),
    "data already there": (P("data", None), (8, 8), P("data", None)),
    "data already there among others": (
        P(None, ("fsdp", "data")),
        (8, 8),
        P(None, ("fsdp", "data")),
    ),
}


@pytest.mark.parametrize("case", ZERO)
def test_optimizer_state_takes_the_data_axis_on(case: str) -> None:
    spec, shape, expected = ZERO[case]
    assert add_data_to_sharding(spec, shape, MESH) == expected
    sharding = NamedSharding(MESH, spec) if len(spec) <= len(shape) else None
    if sharding is not None:
        assert add_data_to_sharding(sharding, shape) == NamedSharding(MESH, expected)


@pytest.mark.parametrize("case", ZERO)
def test_adding_data_twice_is_adding_it_once(case: str) -> None:
    spec, shape, expected = ZERO[case]
    once = add_data_to_sharding(spec, shape, MESH)
    assert add_data_to_sharding(once, shape, MESH) == expected


@pytest.mark.parametrize("axis", ["one", "gone"])
def test_an_axis_of_size_one_is_not_added(axis: str) -> None:
    assert add_data_to_sharding(P("fsdp"), (8, 8), MESH, axis) == P("fsdp")


def test_a_spec_that_shards_dimensions_the_array_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected a spec for 1 dimensions, found P\('fsdp', 't"):
        add_data_to_sharding(P("fsdp", "tensor"), (8,), MESH)


def test_a_dimension_its_axes_do_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dimension 0 of \(6, 8\) to be divisible by 4"):
        add_data_to_sharding(P("fsdp"), (6, 8), MESH)


def test_a_spec_without_a_mesh_is_refused() -> None:
    with pytest.raises(ValueError, match="pass mesh="):
        add_data_to_sharding(P("fsdp"), (8,))


def test_a_whole_tree_is_sharded_over_data() -> None:
    arrays: Any = nnx.state(
        nnx.eval_shape(lambda: nnx.Linear(8, 6, rngs=nnx.Rngs(0), param_dtype=jnp.float32))
    )
    shardings = jax.tree.map(lambda array: NamedSharding(MESH, P()), arrays)
    changed = shard_over_data(shardings, arrays)
    assert changed["kernel"].get_raw_value() == NamedSharding(MESH, P("data", None))
    assert changed["bias"].get_raw_value() == NamedSharding(MESH, P("data"))


def test_trees_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="pytree structure error"):
        shard_over_data({"a": NamedSharding(MESH, P())}, {"b": jnp.zeros(8)})
