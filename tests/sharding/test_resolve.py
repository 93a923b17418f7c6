"""resolve_spec: pairs of names and rules with the spec Linen gives, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from flax import linen
from flax.core.spmd import logical_axis_rules
from jax.sharding import AbstractMesh, PartitionSpec

from nnx_migrate.sharding import resolve_spec

P = PartitionSpec
FREE = PartitionSpec.UNCONSTRAINED

# What is resolved by what to what; the oracle below checks each against Linen too.
CASES: dict[str, tuple[Any, Any, PartitionSpec]] = {
    "no dimensions": ((), (("a", "x"),), P()),
    "a tuple": (("a", "b"), (("a", "x"), ("b", "y")), P("x", "y")),
    "a list": (["a", "b"], [["a", "x"], ["b", "y"]], P("x", "y")),
    "a PartitionSpec": (P("a", None, "b"), (("b", "y"), ("a", "x")), P("x", None, "y")),
    "no rules": (("a", "b"), (), P(None, None)),
    "a name without a rule": (("a", "b"), (("b", "y"),), P(None, "y")),
    "None among the names": ((None, "b", None), (("b", "y"),), P(None, "y", None)),
    "UNCONSTRAINED among the names": ((FREE, "b", FREE), (("b", "y"),), P(FREE, "y", FREE)),
    "mesh axes among the names": ((("x", "z"), "b"), (("b", "y"),), P(("x", "z"), "y")),
    "mesh axes among the names are in use": ((("x", "z"), "b"), (("b", "z"),), P(("x", "z"), None)),
    "a rule with a tuple": (("a",), (("a", ("x", "y")),), P(("x", "y"))),
    "a rule with a list": (("a",), (("a", ["x", "y"]),), P(("x", "y"))),
    "a tuple of one": (("a",), (("a", ("x",)),), P("x")),
    "the first rule wins": (("a",), (("a", "x"), ("a", "y")), P("x")),
    "a rule that conflicts falls through": (
        ("a", "b"),
        (("b", "x"), ("a", "x"), ("a", "y")),
        P("y", "x"),
    ),
    "a partly conflicting tuple is rejected whole": (
        ("a", "b"),
        (("b", "x"), ("a", ("x", "y"))),
        P(None, "x"),
    ),
    "and a later rule is tried": (
        ("a", "b"),
        (("b", "x"), ("a", ("x", "y")), ("a", ("z", "y"))),
        P(("z", "y"), "x"),
    ),
    "the order of the rules decides, not that of the dimensions": (
        ("a", "b"),
        (("b", "x"), ("a", "x")),
        P(None, "x"),
    ),
    "None assigns": (("a",), (("a", None), ("a", "x")), P(None)),
    "an empty tuple assigns": (("a",), (("a", ()), ("a", "x")), P(None)),
    "an empty list assigns": (("a",), (("a", []), ("a", "x")), P(None)),
    "UNCONSTRAINED assigns": (("a",), (("a", FREE), ("a", "x")), P(FREE)),
    "UNCONSTRAINED never conflicts": (("a", "b"), (("a", FREE), ("b", FREE)), P(FREE, FREE)),
    "None never conflicts": (("a", "b"), (("a", None), ("b", None)), P(None, None)),
}


@pytest.mark.parametrize("case", CASES)
def test_names_resolve_as_stated(case: str) -> None:
    names, rules, expected = CASES[case]
    assert resolve_spec(names, rules) == expected


@pytest.mark.parametrize("case", CASES)
def test_linen_agrees(case: str) -> None:
    names, rules, expected = CASES[case]
    assert linen.logical_to_mesh_axes(names, rules) == expected


def test_none_instead_of_names_is_none() -> None:
    assert resolve_spec(None, (("a", "x"),)) is None
    assert linen.logical_to_mesh_axes(None, (("a", "x"),)) is None


def test_a_string_is_one_name_and_not_its_letters() -> None:
    assert resolve_spec("ab", (("ab", "x"), ("a", "y"))) == P("x")


def test_what_a_partition_spec_says_of_reductions_stays() -> None:
    names = P("a", reduced={"y"})
    assert resolve_spec(names, (("a", "x"),)) == P("x", reduced={"y"})


MESH = AbstractMesh((2, 1, 4), ("x", "one", "y"))
MESH_CASES: dict[str, tuple[Any, Any, PartitionSpec]] = {
    "an axis of size 1": (("a",), (("a", "one"),), P(None)),
    "an axis of size 1 in a tuple": (("a",), (("a", ("x", "one", "y")),), P(("x", "y"))),
    "a tuple that leaves one axis": (("a",), (("a", ("x", "one")),), P("x")),
    "a tuple that leaves nothing": (("a",), (("a", ("one", "gone")),), P(None)),
    "an axis the mesh lacks": (("a", "b"), (("a", "gone"), ("b", "y")), P(None, "y")),
    "mesh axes among the names": ((("one", "y"), FREE), (), P("y", FREE)),
    "a conflict over an axis of size 1 still loses the whole rule": (
        ("a", "b"),
        (("a", ("x", "one")), ("b", ("one", "y"))),
        P("x", None),
    ),
    "a conflict over an absent axis too": (
        ("a", "b"),
        (("a", ("x", "gone")), ("b", ("gone", "y"))),
        P("x", None),
    ),
}


@pytest.mark.parametrize("case", MESH_CASES)
def test_with_a_mesh_axes_are_dropped_after_conflicts_are_judged(case: str) -> None:
    names, rules, expected = MESH_CASES[case]
    assert resolve_spec(names, rules, MESH) == expected


def test_a_mapping_of_sizes_serves_as_a_mesh() -> None:
    assert resolve_spec(("a",), (("a", ("x", "one")),), {"x": 2, "one": 1}) == P("x")


def test_without_rules_those_of_the_context_count() -> None:
    with linen.logical_axis_rules((("a", "x"),)):
        assert resolve_spec(("a",)) == P("x")
    with logical_axis_rules((("a", "y"),)):
        assert resolve_spec(("a",)) == P("y")
    assert resolve_spec(("a",)) == P(None)


def test_no_rules_given_is_not_the_rules_of_the_context() -> None:
    with linen.logical_axis_rules((("a", "x"),)):
        assert resolve_spec(("a",), ()) == P(None)


@pytest.mark.parametrize("names", [("a", "b", "a"), ["a", "a"], P("a", "a"), ("a", "a", "b", "b")])
def test_a_name_at_two_dimensions_is_refused_as_in_linen(names: Any) -> None:
    with pytest.raises(ValueError, match="more than once"):
        resolve_spec(names, (("a", "x"),))
    with pytest.raises(ValueError, match="more than once"):
        linen.logical_to_mesh_axes(names, (("a", "x"),))


def test_the_refusal_names_the_array_and_the_names() -> None:
    with pytest.raises(ValueError, match=r"decoder/wi: .* found 'a', 'b' more than once in \('b'"):
        resolve_spec(("b", "a", "a", "b"), (), array="decoder/wi")


@pytest.mark.parametrize("rules", [{"a": "x"}, "ab", 3])
def test_rules_that_are_no_sequence_of_pairs_are_refused(rules: Any) -> None:
    with pytest.raises(ValueError, match="expected a list or tuple of pairs"):
        resolve_spec(("a",), rules)


@pytest.mark.parametrize("rule", [("a",), ("a", "x", "y"), None, (["a"], "x")])
def test_a_rule_that_is_no_pair_is_refused_with_its_position(rule: Any) -> None:
    with pytest.raises(ValueError, match="at position 1"):
        resolve_spec(("a",), (("b", "x"), rule))
