"""Stacking axes: recorded, taken off around scans, put back; names move with values."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding import (
    ScanAxis,
    construct_named_sharding,
    in_stack,
    record_scan_axis,
    remove_scan_axis,
    restore_scan_axis,
)
from tests.sharding.meshes import abstract_mesh, mesh

P = PartitionSpec
RULES = (("embed", "fsdp"), ("mlp", "expert"), ("layers", "stage"), ("moe_layers", "stage"))


@pytest.fixture(autouse=True)
def _constructed_without_a_mesh() -> Any:
    with nnx.use_eager_sharding(False):
        yield


def param(shape: tuple[int, ...], **metadata: Any) -> nnx.Param[Any]:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return nnx.Param(jnp.asarray(values), **metadata)


def metadata(variable: Any) -> dict[str, Any]:
    kept = variable.get_metadata()
    return {key: value for key, value in kept.items() if key not in nnx.Param.required_metadata}


@pytest.mark.parametrize(
    ("names", "index", "shape", "expected"),
    [
        (("embed", "mlp"), 0, (3, 4, 2), ("layers", "embed", "mlp")),
        (("embed", "mlp"), 1, (4, 3, 2), ("embed", "layers", "mlp")),
        (("embed", "mlp"), 2, (4, 2, 3), ("embed", "mlp", "layers")),
        (("embed",), 2, (4, 2, 3), ("embed", None, "layers")),
        ("embed", 0, (3, 4), ("layers", "embed")),
        ((), 0, (3,), ("layers",)),
    ],
)
def test_recording_puts_the_name_where_the_axis_is(
    names: Any, index: int, shape: Any, expected: Any
) -> None:
    stacked = record_scan_axis({"x": param(shape, out_sharding=names)}, index, "layers")["x"]
    assert metadata(stacked) == {
        "out_sharding": expected,
        "partition_name": "layers",
        "param_scan_axis": index,
    }


def test_names_that_have_the_axis_already_stay() -> None:
    layer = nnx.vmap(
        lambda key: nnx.Linear(
            4, 2, kernel_metadata={"out_sharding": ("embed", "mlp")}, rngs=nnx.Rngs(key)
        ),
        out_axes=nnx.StateAxes({nnx.Param: 1, ...: 0}),
        transform_metadata={nnx.PARTITION_NAME: "layers"},
    )
    state = nnx.state(layer(jax.random.split(jax.random.key(0), 3)), nnx.Param)
    kernel = record_scan_axis(state, 1, "layers")["kernel"]
    assert kernel.out_sharding == ("embed", "layers", "mlp")
    assert kernel.shape == (4, 3, 2)


def test_a_slice_has_the_names_and_the_rank_of_one_layer() -> None:
    state = record_scan_axis({"x": param((4, 3, 2), out_sharding=("embed", "mlp"))}, 1, "layers")
    scanned, axes = remove_scan_axis(state)
    assert scanned["x"].shape == (3, 4, 2)
    assert metadata(scanned["x"]) == {"out_sharding": ("embed", "mlp")}
    assert set(axes.values()) == {ScanAxis(1, "layers")}
    np.testing.assert_array_equal(scanned["x"][1], state["x"][:, 1])


entries = st.sampled_from([None, "embed", "mlp", "heads", ("fsdp", "expert")])


@st.composite
def stacked_states(draw: Any) -> Any:
    """States of variables in stacks of their own axes and names, some stacked twice."""
    variables = {}
    for number in range(draw(st.integers(1, 4))):
        rank = draw(st.integers(0, 3))
        names = draw(st.lists(entries, min_size=rank, max_size=rank))
        keys = draw(st.sets(st.sampled_from(["out_sharding", "logical_axes"])))
        variable = {"x": param((2,) * rank, **{key: tuple(names) for key in keys})}
        for name in draw(st.sampled_from([["layers"], ["moe_layers"], [None], ["a", "b"]])):
            size = len(variable["x"].shape)
            index = draw(st.integers(0, size))
            value = jnp.stack([variable["x"][...] + i for i in range(3)], index)
            variable = record_scan_axis({"x": variable["x"].replace(value)}, index, name)
        variables[f"v{number}"] = variable
    return nnx.State(variables)


@settings(deadline=None)
@given(stacked_states())
def test_removing_and_restoring_is_the_identity(state: Any) -> None:
    scanned, axes = remove_scan_axis(state)
    after = restore_scan_axis(scanned, axes)
    assert jax.tree.structure(after) == jax.tree.structure(state)  # metadata included
    jax.tree.map(np.testing.assert_array_equal, after, state)
    for before, one in zip(_variables(state), _variables(scanned), strict=True):
        assert one.shape[0] == 3
        names = one.get_metadata().get("out_sharding")
        assert names is None or len(names) == before.get_value().ndim - 1


def _variables(state: Any) -> list[Any]:
    return jax.tree.leaves(state, is_leaf=lambda node: isinstance(node, nnx.Variable))


@settings(deadline=None)
@given(stacked_states())
def test_abstract_values_move_like_concrete_ones(state: Any) -> None:
    abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), state)
    concrete, axes = remove_scan_axis(state)
    moved, same = remove_scan_axis(abstract)
    assert axes == same
    assert jax.tree.leaves(moved) == [
        jax.ShapeDtypeStruct(x.shape, x.dtype) for x in jax.tree.leaves(concrete)
    ]


def test_the_sharding_of_an_abstract_value_moves_along() -> None:
    sharding = NamedSharding(abstract_mesh(fsdp=4, expert=2), P("fsdp", None, "expert"))
    variable = nnx.Param(jax.ShapeDtypeStruct((4, 3, 2), float, sharding=sharding))
    scanned, _ = remove_scan_axis(record_scan_axis({"x": variable}, 1, "layers"))
    assert scanned["x"].get_raw_value().sharding.spec == P(None, "fsdp", "expert")


def test_keys_and_composite_values_move_too() -> None:
    keys = nnx.RngKey(jax.random.split(jax.random.key(0), (2, 3)), tag="dropout")
    pair = nnx.Param((jnp.zeros((2, 3)), jnp.zeros((4, 3, 1))))
    scanned, axes = remove_scan_axis(record_scan_axis({"k": keys, "p": pair}, 1, "layers"))
    assert [x.shape for x in jax.tree.leaves(scanned)] == [(3, 2), (3, 2), (3, 4, 1)]
    after = restore_scan_axis(scanned, axes)
    assert [x.shape for x in jax.tree.leaves(after)] == [(2, 3), (2, 3), (4, 3, 1)]


class Layer(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.kernel = nnx.Param(rngs.params.normal((4, 4)), out_sharding=("embed", "mlp"))
        self.steps = nnx.BatchStat(jnp.zeros((), jnp.int32))

    def __call__(self, x: jax.Array) -> jax.Array:
        assert self.kernel.out_sharding == ("embed", "mlp")
        assert self.kernel.shape == (4, 4)
        self.steps[...] += 1
        return jnp.tanh(x @ self.kernel[...])


class Decoder(nnx.Module):
    """Two stacks, along different axes and of different lengths."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.dense_layers = nnx.data(self.stack(rngs, 2, ScanAxis(0, "layers")))
        self.moe_layers = nnx.data(self.stack(rngs, 3, ScanAxis(1, "moe_layers")))

    @staticmethod
    def stack(rngs: nnx.Rngs, length: int, axis: ScanAxis) -> Any:
        graphdef, params, rest = nnx.split(
            nnx.vmap(lambda key: Layer(nnx.Rngs(key)))(jax.random.split(rngs(), length)),
            nnx.Param,
            ...,
        )
        front = ScanAxis(0, axis.name)
        return nnx.merge(graphdef, restore_scan_axis(params, axis), restore_scan_axis(rest, front))

    def __call__(self, x: jax.Array) -> jax.Array:
        for stack in (self.dense_layers, self.moe_layers):
            graphdef, state = nnx.split(stack)
            scanned, axes = remove_scan_axis(state)

            def body(x: jax.Array, layer: Any, graphdef: Any = graphdef) -> Any:
                module = nnx.merge(graphdef, layer, copy=True)
                x = module(x)
                return x, nnx.state(module, nnx.BatchStat)  # only what changed

            x, changed = jax.lax.scan(body, x, scanned)
            nnx.update(stack, restore_scan_axis(changed, axes))
        return x


def test_metadata_and_specs_are_the_same_before_and_after_a_step() -> None:
    graphdef, state = nnx.split(Decoder(rngs=nnx.Rngs(0)))
    devices = mesh(fsdp=2, expert=2, stage=1)
    before = construct_named_sharding(state, devices, RULES)
    assert before["dense_layers"]["kernel"].get_raw_value().spec == P(None, "fsdp", "expert")
    assert before["moe_layers"]["kernel"].get_raw_value().spec == P("fsdp", None, "expert")

    @jax.jit
    def step(state: Any, x: jax.Array) -> Any:
        model = nnx.merge(graphdef, state, copy=True)
        grads = nnx.grad(lambda model: model(x).sum(), argnums=nnx.DiffState(0, nnx.Param))(model)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, nnx.state(model, nnx.Param), grads)
        nnx.update(model, params)
        return nnx.state(model)

    after = step(state, jnp.ones((2, 4)))
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert construct_named_sharding(after, devices, RULES) == before
    assert (after["dense_layers"]["steps"][...] == 1).all()
    assert not np.array_equal(
        after["moe_layers"]["kernel"][...], state["moe_layers"]["kernel"][...]
    )


def test_a_stack_is_selected_by_its_name() -> None:
    model = Decoder(rngs=nnx.Rngs(0))
    dense, moe, rest = nnx.state(model, in_stack("layers"), in_stack("moe_layers"), ...)
    assert (set(dense), set(moe), len(rest)) == ({"dense_layers"}, {"moe_layers"}, 0)
    assert not in_stack("layers")((), jnp.ones(3))


def test_names_of_a_stack_are_linens() -> None:
    class Body(linen.Module):
        @linen.compact
        def __call__(self, x: jax.Array) -> Any:
            init = linen.with_logical_partitioning(linen.initializers.ones, ("embed", "mlp"))
            return linen.Dense(4, kernel_init=init)(x), None

    scan = linen.scan(
        Body,
        variable_axes={"params": 1},
        split_rngs={"params": True},
        length=3,
        metadata_params={linen.PARTITION_NAME: "layers"},
    )
    boxed = scan().init(jax.random.key(0), jnp.ones((2, 4)))["params"]["Dense_0"]["kernel"]
    ours = restore_scan_axis(
        {"x": param((3, 4, 4), out_sharding=("embed", "mlp"))}, ScanAxis(1, "layers")
    )["x"]
    assert boxed.names == ours.out_sharding
    assert boxed.value.shape == ours.shape


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"out_sharding": ("embed",)}, "expected a record of the stacking axis, found none"),
        (
            {"out_sharding": ("embed",), "partition_name": "layers", "param_scan_axis": 0},
            r"'layers' at position 0 of the names, .* found \('embed',\)",
        ),
        (
            {"out_sharding": ("x", "layers"), "partition_name": "layers", "param_scan_axis": 0},
            "'layers' at position 0",
        ),
        ({"out_sharding": P("fsdp"), "partition_name": "layers", "param_scan_axis": 0}, "resolved"),
        ({"partition_name": "layers", "param_scan_axis": 2}, "a value with an axis 2"),
        ({"partition_name": ("a",), "param_scan_axis": (0, 1)}, "as many scan axis names"),
    ],
)
def test_an_inconsistent_stack_is_refused_with_its_path(metadata: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^layer/kernel: .*{message}"):
        remove_scan_axis({"layer": {"kernel": param((3, 4), **metadata)}})


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (param((3,)), "an axis 1"),
        (param((3, 4), logical_axes=("layers",)), "at position 1"),
        (param((3, 4, 2), logical_axes=("embed",)), "cannot be told"),
    ],
)
def test_an_axis_that_cannot_be_recorded_is_refused(variable: Any, message: str) -> None:
    name = None if "told" in message else "layers"
    with pytest.raises(ValueError, match=message):
        record_scan_axis({"x": variable}, 1, name)


def test_restoring_knows_the_paths_it_was_given() -> None:
    scanned, axes = remove_scan_axis(record_scan_axis({"x": param((3, 4))}, 0, "layers"))
    with pytest.raises(ValueError, match=r"^y: expected a path that remove_scan_axis met"):
        restore_scan_axis({"y": scanned["x"]}, axes)
    with pytest.raises(TypeError, match=r"^x: expected a Variable, found ArrayImpl"):
        restore_scan_axis({"x": jnp.ones(3)}, axes)
