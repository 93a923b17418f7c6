"""Shardings of random states: made, taken out, and used."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from flax import linen, nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import NamedSharding, PartitionSpec

from nnx_migrate.sharding import construct_named_sharding, extract_named_sharding, resolve_spec
from tests.sharding.meshes import mesh

NAMES = ["embed", "mlp", "heads", "layers", "unknown"]
AXES = ["fsdp", "expert", "one", "absent"]
KEYS = ["out_sharding", "sharding_names", "sharding", "logical_axes"]
TYPES = [nnx.Param, nnx.BatchStat, nnx.Cache, nnx.OptState]

targets = st.one_of(
    st.none(),
    st.sampled_from(AXES),
    st.lists(st.sampled_from(AXES), max_size=2, unique=True).map(tuple),
)
rule_lists = st.lists(st.tuples(st.sampled_from(NAMES), targets), min_size=1, max_size=8)


@st.composite
def variables(draw: Any) -> Any:
    """A variable of rank 0 to 3, of sizes that every mesh divides, with or without names."""
    names = draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
    names = [name if draw(st.integers(0, 4)) else None for name in names]
    kind = draw(st.sampled_from(TYPES))
    shape = tuple(8 * draw(st.integers(1, 2)) for _ in names)
    value: Any = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    if draw(st.booleans()):
        value = (value, {"scale": np.float32(2.0)})
    variable = kind(value)
    metadata = {} if not draw(st.integers(0, 4)) else {draw(st.sampled_from(KEYS)): tuple(names)}
    if draw(st.booleans()):
        metadata["sharding_rules"] = tuple(draw(rule_lists))
    return kind.from_metadata(value, variable.get_metadata() | metadata)


states = st.dictionaries(
    st.sampled_from("abcd"),
    st.one_of(variables(), st.dictionaries(st.sampled_from("xyz"), variables(), min_size=1)),
    min_size=1,
).map(nnx.State)


@settings(deadline=None)
@given(states, rule_lists)
def test_shardings_are_linens_and_come_out_as_they_went_in(state: Any, rules: Any) -> None:
    devices = mesh(fsdp=4, expert=2, one=1)
    found = construct_named_sharding(state, devices, rules)
    assert jax.tree.structure(found) == jax.tree.structure(state)
    assert jax.tree.map(_checked, state, found) is not None
    for variable, shardings in zip(_variables(state), _variables(found), strict=True):
        main = jax.tree.leaves(shardings.get_raw_value())[0]
        assert main.spec == _linens(variable, rules, devices)
    bare = extract_named_sharding(found)
    assert jax.tree.leaves(bare) == jax.tree.leaves(found)
    plain = jax.tree.map(lambda variable: variable.get_raw_value(), state, is_leaf=_is_variable)
    assert jax.tree.structure(bare) == jax.tree.structure(plain)


def _checked(x: Any, sharding: Any) -> int:
    """Both trees have an array and its sharding at the same place."""
    assert isinstance(sharding, NamedSharding)
    return int(np.prod(sharding.shard_shape(np.shape(x))))


def _linens(variable: Any, rules: Any, devices: Any) -> PartitionSpec:
    metadata = variable.get_metadata()
    names = next((metadata[key] for key in KEYS if key in metadata), ())
    own = metadata.get("sharding_rules", ())
    assert resolve_spec(names, [*own, *rules]) == linen.logical_to_mesh_axes(names, [*own, *rules])
    return resolve_spec(names, [*own, *rules], devices)


def _is_variable(node: Any) -> bool:
    return isinstance(node, nnx.Variable)


def _variables(tree: Any) -> list[Any]:
    return jax.tree.leaves(tree, is_leaf=_is_variable)


@settings(deadline=None, max_examples=20)
@given(states, rule_lists)
def test_a_state_is_placed_by_its_shardings_and_keeps_them_through_jit(
    state: Any, rules: Any
) -> None:
    shardings = construct_named_sharding(state, mesh(fsdp=4, expert=2, one=1), rules)
    placed = jax.device_put(state, shardings)
    after = jax.jit(lambda s: s, in_shardings=(shardings,), out_shardings=shardings)(placed)
    assert construct_named_sharding(after, mesh(fsdp=4, expert=2, one=1), rules) == shardings
    for x, y, sharding in zip(*map(jax.tree.leaves, (state, after, shardings)), strict=True):
        np.testing.assert_array_equal(x, y)
        assert y.sharding == sharding
