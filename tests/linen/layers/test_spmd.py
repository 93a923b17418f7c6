"""Logical axis names, resolved and applied as by Linen."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

from tests.linen.layers.comparison import (
    assert_same_error,
    assert_same_text,
    evaluate,
    floats,
    namespaces,
    pair,
)

RULES = (("batch", "data"), ("heads", ("data", "model")), ("embed", "model"), ("heads", None))


def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))


@pytest.mark.parametrize(
    "names",
    [
        ("batch", None, "embed"),
        ("batch", "heads"),
        ("heads", "batch"),
        ("unknown", "embed"),
        (jax.sharding.PartitionSpec.UNCONSTRAINED, "batch"),
        (),
        None,
    ],
)
def test_names_are_resolved_alike(names):
    linen, lazy = evaluate("spmd")
    assert linen.logical_to_mesh_axes(names, RULES) == lazy.logical_to_mesh_axes(names, RULES)
    told = [str(side._logical_to_mesh_axes(names, RULES)) for side in (linen, lazy)]
    assert told[0] == told[1]
    axis_rules, _ = evaluate("partitioning.axis_rules")
    with axis_rules(RULES):
        assert linen.logical_to_mesh_axes(names) == lazy.logical_to_mesh_axes(names)


def test_rules_set_in_either_are_those_of_both():
    linen, lazy = evaluate("partitioning")
    with lazy.axis_rules(RULES):
        assert linen.get_axis_rules() == RULES
    lazy.set_axis_rules(RULES)
    try:
        assert linen.get_axis_rules() == RULES
    finally:
        linen.set_axis_rules(())
    assert lazy.get_axis_rules() == ()


def test_trees_of_names_become_specs_and_shardings():
    tree = {"a": PartitionSpec("batch", None), "b": [PartitionSpec("embed")]}
    linen, lazy = evaluate("spmd")
    assert linen.logical_to_mesh(tree, RULES) == lazy.logical_to_mesh(tree, RULES)
    shardings = [side.logical_to_mesh_sharding(tree, mesh(), RULES) for side in (linen, lazy)]
    assert shardings[0] == shardings[1]


CONSTRAINTS = {
    "one": "spmd.with_logical_constraint(x, ('batch', 'embed'), RULES, MESH)",
    "unsharded": "spmd.with_logical_constraint(x, ('unknown', 'embed'), RULES, MESH)",
    "left alone": (
        "spmd.with_logical_constraint(x, ('unknown', 'embed'), RULES, MESH, spmd.RulesFallback.NO_CONSTRAINT)"
    ),
    "tree": "spmd.with_logical_constraint({'a': x}, {'a': ('batch', None)}, RULES, MESH)",
    "no names": "spmd.with_logical_constraint(x, None, RULES, MESH)",
    "no rules": "spmd.with_logical_constraint(x, ('batch',), (), MESH)",
    "no mesh": "spmd.with_logical_constraint(x, ('batch', 'embed'), RULES)",
}


def with_mesh(text: str) -> tuple:
    sides = namespaces(f"def run(RULES, MESH):\n    return lambda x: {text}")
    return tuple(side["run"](RULES, mesh()) for side in sides)


@pytest.mark.parametrize("case", CONSTRAINTS)
def test_constraints_are_the_same_program(case):
    assert_same_text(*with_mesh(CONSTRAINTS[case]), floats(2, 4))


def test_a_global_mesh_counts():
    linen, lazy = with_mesh(CONSTRAINTS["no mesh"])
    with jax.set_mesh(mesh()):
        assert_same_text(linen, lazy, floats(2, 4))
        assert "sharding" in jax.jit(lazy).lower(floats(2, 4)).as_text()


@pytest.mark.parametrize(
    "expression",
    [
        "spmd.logical_to_mesh_axes(('a', 'a'), (('a', 'x'),))",
        "spmd.logical_to_mesh_axes(('a',), {'a': 'x'})",
        "spmd.with_logical_constraint(jnp.ones(2), ('a',), (('b', 'x'),), None, spmd.RulesFallback.RAISE_ERROR)",
    ],
)
def test_what_linen_refuses_is_refused(expression):
    assert_same_error(expression)


BOXED = """
INIT = spmd.with_logical_partitioning(initializers.lecun_normal(), ("embed", "mlp"), rules=(("embed", "model"),))
"""


def test_boxes_are_read_alike():
    linen, lazy = evaluate("INIT(jax.random.key(0), (2, 3))", BOXED)
    assert lazy.names == linen.names
    assert lazy.get_partition_spec() == linen.get_partition_spec()
    assert lazy.add_axis(0, {"partition_name": "layers"}).names == ("layers", "embed", "mlp")
    keys = [set(box.to_nnx_metadata()) for box in (linen, lazy)]
    assert keys[0] == keys[1]
    again = type(lazy).from_nnx_metadata(lazy.to_nnx_metadata())
    assert (again.names, again.rules, again.mesh) == (lazy.names, lazy.rules, lazy.mesh)
    assert lazy == lazy.replace(names=("a", "b"))
    assert lazy != linen


def test_boxed_parameters_are_the_same_program():
    found = pair("linear.Dense(3, kernel_init=INIT)", floats(2, 4), source=BOXED)
    found.check_programs()
    with jax.set_mesh(mesh()):
        keys = found._keys(1)
        variables = jax.eval_shape(found.init(found.linen), keys)
        texts = []
        for model in (found.linen, found.lazy):
            boxed = jax.jit(found.init(model))(keys)
            texts.append(jax.jit(found.apply(model)).lower(boxed, keys, found.inputs).as_text())
        assert texts[0] == texts[1]
        assert variables["params"]["kernel"].names == ("embed", "mlp")
