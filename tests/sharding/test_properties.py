"""Over random names, rules and meshes, resolution is Linen's, then axes leave the spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flax import linen
from hypothesis import given
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from nnx_migrate.sharding import (
    AxesDropped,
    SilentResolutionError,
    canonical_spec,
    compare_specs,
    explain_spec,
    resolve_spec,
)
from tests.sharding.properties import examples, meshes, names, rules

P = PartitionSpec


def outcome(resolve: Callable[..., Any], *arguments: Any) -> Any:
    """The result, or that the arguments were refused."""
    try:
        return resolve(*arguments)
    except ValueError:
        return "refused"


def dropped(spec: PartitionSpec, mesh: AbstractMesh) -> PartitionSpec:
    """The spec without what the mesh lacks or has one device along: written apart from the shim."""
    sizes = dict(mesh.shape_tuple)
    useful = {axis for axis, size in sizes.items() if size > 1}
    kept: list[Any] = []
    for entry in spec:
        if entry is None or entry is P.UNCONSTRAINED:
            kept.append(entry)
        else:
            axes = [entry] if isinstance(entry, str) else list(entry)
            kept.append([axis for axis in axes if axis in useful] or None)
    return P(*kept)


@examples(1500)
@given(names(), rules())
def test_resolution_is_linens(given_names: Any, given_rules: Any) -> None:
    ours = outcome(resolve_spec, given_names, given_rules)
    assert ours == outcome(linen.logical_to_mesh_axes, given_names, given_rules)


@examples(1500)
@given(names(unique=True), rules(), meshes())
def test_with_a_mesh_it_is_linens_and_then_axes_leave(
    given_names: Any, given_rules: Any, mesh: AbstractMesh
) -> None:
    linens = linen.logical_to_mesh_axes(given_names, given_rules)
    assert resolve_spec(given_names, given_rules, mesh) == dropped(linens, mesh)


@examples()
@given(names(unique=True), rules(), meshes())
def test_the_explanation_is_of_the_same_spec(
    given_names: Any, given_rules: Any, mesh: AbstractMesh
) -> None:
    for where in (None, mesh):
        found = explain_spec(given_names, given_rules, where)
        assert found.spec == resolve_spec(given_names, given_rules, where)
        assert all(str(one) for one in found.silent)


@examples()
@given(names(unique=True), rules())
def test_strict_refuses_exactly_where_something_is_silent(
    given_names: Any, given_rules: Any
) -> None:
    explained = explain_spec(given_names, given_rules).silent
    assert not any(isinstance(one, AxesDropped) for one in explained)
    if explained:
        with pytest.raises(SilentResolutionError) as caught:
            resolve_spec(given_names, given_rules, strict=True)
        assert caught.value.silent == explained
    else:
        spec = resolve_spec(given_names, given_rules, strict=True)
        assert spec == resolve_spec(given_names, given_rules)


@examples()
@given(names(unique=True), rules(), meshes())
def test_canonical_form_is_stable_and_shards_the_same(
    given_names: Any, given_rules: Any, mesh: AbstractMesh
) -> None:
    spec = resolve_spec(given_names, given_rules, mesh)
    short = canonical_spec(spec)
    assert canonical_spec(short) == short
    assert tuple(spec)[: len(short)] == tuple(short)
    assert set(tuple(spec)[len(short) :]) <= {None}
    assert compare_specs({"a": spec}, {"a": short}, mesh).equal


@examples()
@given(names(unique=True), rules(), meshes())
def test_what_is_resolved_for_a_mesh_is_a_sharding_on_it(
    given_names: Any, given_rules: Any, mesh: AbstractMesh
) -> None:
    """Given axes may repeat one another; names never do."""
    logical = [name if isinstance(name, str) else None for name in given_names]
    spec = resolve_spec(logical, given_rules, mesh)
    assert NamedSharding(mesh, spec).spec == spec
