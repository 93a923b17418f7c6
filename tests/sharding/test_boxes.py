"""Boxes of names: Linen's behaviour, and Linen's functions and boxes take them as their own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from nnx_migrate.sharding import (
    LogicallyPartitioned,
    Partitioned,
    get_partition_spec,
    get_sharding,
    replace_boxed,
    unbox,
)
from nnx_migrate.sharding.boxes import boxed, metadata_of
from tests.sharding.meshes import AUTO, mesh

P = jax.P
X = jnp.arange(8.0).reshape(4, 2)
RULES = (("embed", "fsdp"), ("mlp", "fsdp"), ("mlp", "tensor"))
NAMES = ("embed", "mlp")
BOTH = [(LogicallyPartitioned, linen.LogicallyPartitioned), (Partitioned, linen.Partitioned)]


def trees() -> tuple[dict[str, Any], dict[str, Any]]:
    """The same tree in our boxes and in Linen's."""

    def tree(logical: Any, by_mesh_axes: Any) -> dict[str, Any]:
        return {
            "logical": logical(X, NAMES),
            "ruled": logical(X, NAMES, rules=(("embed", "tensor"),)),
            "mesh": by_mesh_axes(X, ("fsdp", None)),
            "plain": X,
            "none": None,
            "text": "text",
        }

    return (
        tree(LogicallyPartitioned, Partitioned),
        tree(linen.LogicallyPartitioned, linen.Partitioned),
    )


def test_specs_and_shardings_of_a_tree_are_linens() -> None:
    ours, theirs = trees()
    devices = mesh(AUTO, embed=2, mlp=2, fsdp=2)
    expected = linen.get_partition_spec(theirs)
    assert expected["logical"] == P("embed", "mlp")
    assert get_partition_spec(ours) == get_partition_spec(theirs) == expected
    assert linen.get_partition_spec(ours) == expected
    assert get_sharding(ours, devices) == linen.get_sharding(theirs, devices)


def test_a_variable_has_the_spec_of_its_box() -> None:
    variable = nnx.Param(LogicallyPartitioned(X, NAMES))
    assert get_partition_spec({"kernel": variable, "bias": nnx.Param(X)}) == {
        "kernel": P("embed", "mlp"),
        "bias": P(),
    }


@pytest.mark.parametrize("rules", [None, (), (("embed", "embed"),), (("embed", "fsdp"),)])
def test_a_variable_keeps_the_kind_of_its_box_whatever_its_rules(rules: Any) -> None:
    """Rules of each name to itself, and none at all, were taken for those of mesh axes."""
    box = boxed(nnx.Param(LogicallyPartitioned(X, NAMES, rules=rules)))
    assert type(box) is LogicallyPartitioned
    assert (box.names, box.rules) == (NAMES, rules)
    assert type(boxed(nnx.Param(Partitioned(X, NAMES)))) is Partitioned
    assert type(boxed(nnx.Param(Partitioned(X, (None,))))) is Partitioned


def test_a_box_without_rules_is_not_constrained_when_it_is_read() -> None:
    def text(box: Any) -> str:
        with jax.set_mesh(mesh(AUTO, embed=2, mlp=2)), linen.logical_axis_rules(RULES):
            return str(jax.jit(unbox).lower(box).as_text())

    expected = text(linen.LogicallyPartitioned(X, NAMES, rules=()))
    assert "sharding_constraint" not in expected
    variable = nnx.Param(LogicallyPartitioned(X, NAMES, rules=()))
    assert "sharding_constraint" not in text(boxed(variable))


@pytest.mark.parametrize(("kind", "linens"), BOTH)
def test_the_metadata_of_a_box_of_linens_are_those_of_the_same_box_here(
    kind: Any, linens: Any
) -> None:
    assert metadata_of(linens(X, NAMES)) == metadata_of(kind(X, NAMES))
    assert metadata_of(kind(X, NAMES)) == kind(X, NAMES).metadata
    own = {"rules": (("embed", "embed"),)} if kind is LogicallyPartitioned else {}
    assert metadata_of(linens(X, NAMES, **own)) == metadata_of(kind(X, NAMES, **own))


@pytest.mark.parametrize(("kind", "linens"), BOTH)
def test_a_box_is_a_tree_of_its_value_at_linens_path(kind: Any, linens: Any) -> None:
    for box in (kind(X, NAMES), jax.tree.map(lambda x: x + 1, kind(X - 1, NAMES))):
        assert isinstance(box, kind)
        assert (box.names, box.mesh) == (NAMES, None)
        np.testing.assert_array_equal(box.value, X)
    paths = [
        jax.tree_util.tree_flatten_with_path(one)[0][0][0]
        for one in (kind(X, NAMES), linens(X, NAMES))
    ]
    assert paths[0] == paths[1]
    abstract = jax.eval_shape(lambda: kind(X, NAMES))
    assert (abstract.value.shape, abstract.names) == ((4, 2), NAMES)


@pytest.mark.parametrize("box", [0, 1])
def test_a_stack_gains_the_name_of_its_axis_and_a_layer_loses_it(box: int) -> None:
    kind, linens = BOTH[box]
    params = {nnx.PARTITION_NAME: "layers"}
    for index in range(4):
        ours, theirs = (one(X, NAMES).add_axis(index, params) for one in (kind, linens))
        assert ours.names == theirs.names
        assert ours.remove_axis(index, params).names == theirs.remove_axis(index, params).names
    with pytest.raises(ValueError, match="expected the axis 'layers' at 0"):
        kind(X, NAMES).remove_axis(0, params)
    with pytest.raises(ValueError, match=r"metadata_params=\{nnx.PARTITION_NAME"):
        kind(X, NAMES).add_axis(0, {})


def test_unboxing_gives_the_values_and_under_a_mesh_linens_constraints() -> None:
    ours, theirs = ({k: tree[k] for k in ("logical", "ruled", "mesh")} for tree in trees())
    for found in (unbox(ours), linen.unbox(ours), unbox(theirs)):
        jax.tree.map(lambda x: np.testing.assert_array_equal(x, X), found)

    def constraints(function: Any, tree: Any) -> list[str]:
        with jax.set_mesh(mesh(AUTO, fsdp=2, tensor=2)), linen.logical_axis_rules(RULES):
            lines = jax.jit(function).lower(tree).as_text().splitlines()
        return [line.split("<@mesh")[1] for line in lines if "sharding_constraint" in line]

    expected = constraints(linen.unbox, theirs)
    assert len(expected) == 3
    assert constraints(unbox, ours) == expected
    assert constraints(unbox, theirs) == expected


def test_values_are_replaced_in_their_boxes() -> None:
    ours, _ = trees()
    ours = {"logical": ours["logical"], "plain": X}
    new = replace_boxed(ours, {"logical": X + 1, "plain": X + 2})
    assert new["logical"].names == NAMES
    np.testing.assert_array_equal(new["logical"].value, X + 1)
    np.testing.assert_array_equal(new["plain"], X + 2)
    assert isinstance(new["logical"].replace(names=("a", "b")), LogicallyPartitioned)


def test_questions_about_the_class_are_answered_for_linens_boxes_too() -> None:
    logical, by_axes = linen.LogicallyPartitioned(X, NAMES), linen.Partitioned(X, NAMES)
    assert isinstance(logical, LogicallyPartitioned)
    assert isinstance(by_axes, Partitioned)
    assert not isinstance(by_axes, LogicallyPartitioned)
    assert not isinstance(Partitioned(X, NAMES), LogicallyPartitioned)
    assert not isinstance(X, Partitioned)
    assert not isinstance(nnx.VariableMetadata(X), Partitioned)


@pytest.mark.parametrize(("kind", "linens"), BOTH)
def test_a_bridged_linen_module_keeps_names_under_linens_resolution(kind: Any, linens: Any) -> None:
    class Layer(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            return x @ self.param("kernel", lambda key: kind(X, NAMES))

    bridged = nnx.bridge.lazy_init(nnx.bridge.ToNNX(Layer(), rngs=nnx.Rngs(0)), X.T)
    assert bridged.kernel.get_metadata()["logical_axes"] == NAMES
    assert get_partition_spec(bridged.kernel) == linens(X, NAMES).get_partition_spec()
    np.testing.assert_array_equal(bridged(X.T), X.T @ X)
