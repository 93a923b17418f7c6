"""Specs compare in canonical form, and an axis of size 1 is compared but not exercised."""

from __future__ import annotations

from typing import Any

import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from nnx_migrate.sharding import canonical_spec, compare_specs

P = PartitionSpec
MESH = AbstractMesh((2, 1, 4), ("x", "one", "y"))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (P(), P()),
        (P(None, None), P()),
        (P("x", None), P("x")),
        (P(None, "x", None, None), P(None, "x")),
        (P("x", P.UNCONSTRAINED), P("x", P.UNCONSTRAINED)),
        (P(("x", "one")), P(("x", "one"))),
        (P("x", None, reduced={"y"}), P("x", reduced={"y"})),
    ],
)
def test_none_at_the_end_says_nothing(spec: PartitionSpec, expected: PartitionSpec) -> None:
    assert canonical_spec(spec) == expected


def test_jax_itself_tells_them_apart() -> None:
    """Why there is a canonical form."""
    assert P("x", None) != P("x")


@pytest.mark.parametrize(
    ("left", "right"),
    [(P("x"), P("x", None)), (P(("x",)), P("x")), (P(), P(None)), (P(("x", "y")), P(("x", "y")))],
)
def test_specs_of_the_same_meaning_are_equal(left: Any, right: Any) -> None:
    assert compare_specs({"a": left}, {"a": right}).equal


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        (P("x"), P(None, "x"), r"a: P('x',) against P(None, 'x')"),
        (P(("x", "y")), P(("y", "x")), r"a: P(('x', 'y'),) against P(('y', 'x'),)"),
        (P(("x", "one")), P("x"), r"a: P(('x', 'one'),) against P('x',)"),
        (P("x"), P("x", P.UNCONSTRAINED), "a: P('x',) against P('x', UNCONSTRAINED)"),
        (P("x"), P("x", reduced={"y"}), "a: P('x',) against P('x', reduced={'y'})"),
        (P("x"), None, "a: the right side has no such array"),
        (None, P(), "a: the left side has no such array"),
    ],
)
def test_a_difference_says_what_is_on_each_side(left: Any, right: Any, text: str) -> None:
    sides = [{} if side is None else {"a": side} for side in (left, right)]
    found = compare_specs(*sides, MESH)
    assert not found.equal
    assert [str(one) for one in found.differences] == [text]


def test_the_memory_kind_of_shardings_is_compared() -> None:
    left = NamedSharding(MESH, P("x"), memory_kind="device")
    right = NamedSharding(MESH, P("x"), memory_kind="pinned_host")
    (found,) = compare_specs({"a": left}, {"a": right}).differences
    assert str(found) == "a: memory 'device' against 'pinned_host'"
    assert compare_specs({"a": left}, {"a": P("x", None)}).equal


def test_axes_of_size_one_that_are_used_are_listed_as_not_exercised() -> None:
    specs = {"a": P(("x", "one")), "b": P()}
    found = compare_specs(specs, specs, MESH)
    assert (found.equal, found.arrays, found.not_exercised) == (True, 2, ("one",))
    assert compare_specs({"a": P("x")}, {"a": P("x")}, MESH).not_exercised == ()


def test_a_comparison_of_nothing_is_not_equal() -> None:
    assert not compare_specs({}, {}, MESH).equal
