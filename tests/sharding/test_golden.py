"""Every array and activation that MaxText recorded gets the recorded spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import pytest
from flax import linen, nnx
from jax.sharding import PartitionSpec

from nnx_migrate.sharding import construct_named_sharding, load_axis_rules, resolve_spec
from nnx_migrate.sharding.resolve import mesh_axes
from tests.sharding.meshes import abstract_mesh
from tests.sharding.recordings import FILES, recorded

P = PartitionSpec
SHARED = Path(__file__).parents[2].parent / "shared" / "golden"
COUNTS = {
    "deepseek2-16b__cp-as-ep": (84, 29),
    "deepseek2-16b__default": (84, 29),
    "deepseek2-16b__ep-as-dp": (84, 29),
    "deepseek2-16b__pure-fsdp": (84, 29),
    "deepseek2-16b__shard-exp-on-fsdp": (84, 29),
    "qwen3-0.6b__default": (42, 12),
}


@pytest.fixture(autouse=True)
def _constructed_without_a_mesh() -> Any:
    """Names are given without a mesh here, where NNX would want to shard at once."""
    with nnx.use_eager_sharding(False):
        yield


def rules_of(file: str) -> tuple[tuple[str, Any], ...]:
    return load_axis_rules(recorded(file).rules).logical_axis_rules


def test_every_entry_of_every_file_is_here() -> None:
    found = {file: (len(recorded(file).arrays), len(recorded(file).activations)) for file in FILES}
    assert found == COUNTS


@pytest.mark.parametrize("file", FILES)
def test_the_mesh_is_that_of_the_rules(file: str) -> None:
    here = recorded(file)
    assert here.mesh.axis_names == load_axis_rules(here.rules).mesh_axes


@pytest.mark.parametrize("file", FILES)
def test_names_of_arrays_resolve_to_the_recorded_specs(file: str) -> None:
    rules = rules_of(file)
    found = {row.name: resolve_spec(row.names or (), rules) for row in recorded(file).arrays}
    assert found == {row.name: row.spec for row in recorded(file).arrays}


@pytest.mark.parametrize("file", FILES)
def test_linen_resolves_the_arrays_to_the_recorded_specs(file: str) -> None:
    """The oracle and the record agree, so neither was misread."""
    rules = rules_of(file)
    for row in recorded(file).arrays:
        assert linen.logical_to_mesh_axes(row.names or (), rules) == row.spec, row.name


@pytest.mark.parametrize("file", FILES)
def test_names_of_activations_resolve_to_the_recorded_specs_on_the_mesh(file: str) -> None:
    here, rules = recorded(file), rules_of(file)
    rows = [row for row in here.activations if row.names is not None]
    assert len(rows) >= 7
    found = {row.name: resolve_spec(row.names, rules, here.mesh) for row in rows}
    assert found == {row.name: row.spec for row in rows}


@pytest.mark.parametrize("file", FILES)
def test_activations_constrained_by_mesh_axes_keep_them(file: str) -> None:
    here, rules = recorded(file), rules_of(file)
    rows = [row for row in here.activations if row.names is None]
    assert len(rows) >= 5
    for row in rows:
        given = [tuple(mesh_axes(entry)) or None for entry in row.spec]
        assert resolve_spec(given, rules, here.mesh) == row.spec, row.name


@pytest.mark.parametrize("file", FILES)
def test_the_spec_of_an_array_has_an_entry_for_every_dimension(file: str) -> None:
    arrays = recorded(file).arrays
    assert [row.name for row in arrays if len(row.spec) != len(row.shape)] == []


@pytest.mark.parametrize("file", FILES)
def test_variables_with_recorded_names_get_the_recorded_specs(file: str) -> None:
    """Recorded specs keep mesh axes of size 1: a mesh whose axes are all larger shows them all."""
    rows, rules = recorded(file).arrays, rules_of(file)
    twos = abstract_mesh(**dict.fromkeys(recorded(file).mesh.axis_names, 2))
    state = {
        row.name: nnx.Param(
            jax.ShapeDtypeStruct((128,) * len(row.shape), float), out_sharding=row.names or ()
        )
        for row in rows
    }
    found = construct_named_sharding(state, twos, rules)
    assert {name: one.get_raw_value().spec for name, one in found.items()} == {
        row.name: row.spec for row in rows
    }
    assert len(found) > 40


@pytest.mark.parametrize("file", FILES)
def test_on_the_recorded_mesh_and_shapes_only_axes_of_size_one_are_missing(file: str) -> None:
    rows, rules = recorded(file).arrays, rules_of(file)
    state = {
        row.name: nnx.Param(jax.ShapeDtypeStruct(row.shape, float), out_sharding=row.names or ())
        for row in rows
    }
    found = construct_named_sharding(state, recorded(file).mesh, rules)
    for row in rows:
        assert found[row.name].get_raw_value().spec == resolve_spec(
            row.names or (), rules, recorded(file).mesh
        )


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded files themselves are not here")
def test_the_tables_hold_what_the_recorded_files_hold() -> None:
    for path in sorted(SHARED.glob("*.json")):
        full = json.loads(path.read_text(encoding="utf-8"))
        here = recorded(f"{full['model']}__{full['rule']}")
        shown = [(_plain(row.names), list(row.shape), _plain(row.spec)) for row in here.arrays]
        expected = [(one["logical"], one["shape"], one["spec"]) for one in full["arrays"].values()]
        assert sorted(map(str, shown)) == sorted(map(str, expected)), path.name
        shown = [(_plain(row.names), list(row.shape), _plain(row.spec)) for row in here.activations]
        expected = [(one["logical"], one["shape"], one["spec"]) for one in full["activations"]]
        assert shown == expected, path.name
        rules = load_axis_rules(full["rule"])
        assert _plain(rules.logical_axis_rules) == full["rules"], path.name
        assert dict(here.mesh.shape) == full["mesh"], path.name


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    return [_plain(part) for part in value]
