"""The benchmark of the sharding shim: both sides do the same work, and faults are told."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import pytest
from flax import linen, nnx
from flax.core.spmd import logical_axis_rules

from benchmarks.sharding import states
from benchmarks.sharding.__main__ import faults, main, measure, table
from benchmarks.sharding.timing import Pair, Ratio, against, growth
from nnx_migrate.sharding import construct_named_sharding, resolve_spec


@pytest.mark.parametrize("rules", [states.RULES, states.LISTS, states.PLAIN_RULES])
def test_both_sides_resolve_to_the_same_specs(rules: object) -> None:
    for names in states.LAYER.values():
        theirs = linen.logical_to_mesh_axes(names, rules)
        assert resolve_spec(names, rules, states.MESH) == theirs  # type: ignore[call-overload]


def test_both_sides_construct_the_same_shardings() -> None:
    state = states.state(25)
    ours = construct_named_sharding(state, states.MESH, states.PLAIN_RULES)
    with logical_axis_rules(states.PLAIN_RULES):
        theirs = nnx.get_named_sharding(state, states.MESH)
    assert len(jax.tree.leaves(ours)) == 25
    assert jax.tree.leaves(ours) == jax.tree.leaves(theirs)


def test_a_state_has_the_leaves_asked_for() -> None:
    assert len(jax.tree.leaves(states.state(23))) == 23


def test_each_side_runs_once_to_warm_up_and_once_a_turn() -> None:
    calls: list[str] = []
    small = Pair("x", 1, lambda: calls.append("a"), lambda: calls.append("b"))
    large = Pair("x", 2, lambda: calls.append("c"), lambda: calls.append("d"))
    found = against([small, large], turns=2)
    assert calls == ["a", "b", "c", "d"] * 3
    assert [one.leaves for one in found] == [1, 2]
    assert min(min(one.ours, one.flax) for one in found) >= 0


def test_growth_is_of_time_per_leaf() -> None:
    assert growth(Ratio("x", 10, 1.0, 1.0), Ratio("x", 100, 20.0, 1.0)) == 2.0


def test_what_is_slower_or_not_linear_is_a_fault() -> None:
    ratios = [Ratio("quick", 10, 1.0, 2.0), Ratio("slow", 10, 3.0, 2.0)]
    assert faults(ratios, [1.0, 1.0]) == [
        "slow: expected not slower than flax, found 1.50 times its time"
    ]
    assert faults(ratios[:1], [2.0]) == [
        "quick: expected time linear in leaves, found 2.00 times per leaf"
    ]
    assert faults(ratios[:1], [1.0]) == []


def test_every_comparison_is_measured_and_shown() -> None:
    small, large = measure((5, 20), turns=1)
    assert [one.leaves for one in (*small, *large)] == [5] * 4 + [20] * 4
    assert [one.what for one in small] == [one.what for one in large]
    lines = table(large, [1.0] * 4).splitlines()
    assert len(lines) == 5
    assert {len(line.split()) for line in lines[1:]} >= {6}


def test_the_figures_are_written_as_json(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    code = main(["--leaves", "40", "--turns", "1", "--json", str(path)])
    content = json.loads(path.read_text())
    assert code in (0, 1)
    assert [one["leaves"] for one in content["ratios"]] == [5] * 4 + [40] * 4
    assert len(content["growth"]) == 4
