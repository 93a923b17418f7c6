"""Which condition tells the instances that build a submodule from those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from nnx_migrate.evidence.presence import Outcome, Presence, presence_of


def outcomes(*rows: tuple[dict[str, Any], bool]) -> list[Outcome]:
    """Recorded instances, one per row."""
    return [Outcome(i, frozenset(), facts, built) for i, (facts, built) in enumerate(rows)]


def told(*rows: tuple[dict[str, Any], bool]) -> Presence:
    found = presence_of(outcomes(*rows))
    assert found is not None
    return found


def one(name: str, *values: Any) -> list[dict[str, Any]]:
    return [{name: value} for value in values]


@pytest.mark.parametrize(
    ("built", "not_built", "condition"),
    [
        (one("self.norm", True), one("self.norm", False), "self.norm"),
        (one("self.fast", False), one("self.fast", True), "not self.fast"),
        (one("self.out", 3, 4), one("self.out", None), "self.out is not None"),
        (one("self.rate", None), one("self.rate", 0.5), "self.rate is None"),
        (one("self.mode", "a"), one("self.mode", "b", "c"), "self.mode == 'a'"),
        (one("self.mode", "a", "b"), one("self.mode", "c"), "self.mode != 'c'"),
        (one("self.n", 2, 3), one("self.n", 0, 1), "self.n > 1"),
        (one("self.n", 0), one("self.n", 1, 2), "self.n < 1"),
        (one("self.n", 1, 3), one("self.n", 2), "self.n != 2"),
        (one("self.n", 2), one("self.n", 1, 3), "self.n == 2"),
    ],
)
def test_a_condition_on_one_field(
    built: list[dict[str, Any]], not_built: list[dict[str, Any]], condition: str
) -> None:
    found = told(*((facts, True) for facts in built), *((facts, False) for facts in not_built))
    assert (found.condition, found.alternatives) == (condition, ())
    assert (found.built, found.instances) == (len(built), len(built) + len(not_built))


def pair(features: int, width: int) -> dict[str, Any]:
    return {"self.features": features, "x.shape[-1]": width}


def test_a_condition_on_a_field_and_an_input() -> None:
    found = told((pair(8, 5), True), (pair(5, 8), True), (pair(5, 5), False), (pair(8, 8), False))
    assert found.condition == "x.shape[-1] != self.features"


def test_traces_with_changed_sizes_tell_conditions_apart_that_instances_do_not() -> None:
    rows = [(pair(8, 5), True), (pair(5, 5), False)]
    assert told(*rows).condition is None
    changed = Outcome(1, frozenset({"x.shape[-1]"}), pair(5, 10), True)
    more = Outcome(0, frozenset({"self.features"}), pair(16, 5), True)
    found = presence_of([*outcomes(*rows), changed, more])
    assert found is not None
    assert found.condition == "x.shape[-1] != self.features"
    assert (found.built, found.instances, found.traces) == (1, 2, 4)


def test_a_flag_is_preferred_to_an_input() -> None:
    rows = [
        ({"self.a": True, "x.shape[-1]": 3}, True),
        ({"self.a": False, "x.shape[-1]": 2}, False),
    ]
    assert told(*rows).condition == "self.a"
    assert told(*rows).alternatives == ("x.shape[-1] > 2",)


def test_two_fields_that_always_moved_together_are_no_answer() -> None:
    found = told(
        ({"self.a": True, "self.b": True}, True), ({"self.a": False, "self.b": False}, False)
    )
    assert found.condition is None
    assert found.alternatives == ("self.a", "self.b")
    assert found.reason == "self.a and self.b fit alike"


def test_a_threshold_with_numbers_in_between_is_no_answer() -> None:
    found = told(({"self.n": 8}, True), ({"self.n": 2}, False))
    assert (found.condition, found.reason) == (None, "no condition over fields and inputs fits")


def test_what_no_field_tells_is_no_answer() -> None:
    found = told(({"self.n": 8}, True), ({"self.n": 8}, False))
    assert (found.condition, found.reason) == (None, "no condition over fields and inputs fits")


def test_one_and_true_are_different() -> None:
    found = told(({"self.n": True}, True), ({"self.n": 1}, False))
    assert found.condition is None


def test_what_every_recorded_instance_builds_is_not_listed() -> None:
    changed = Outcome(0, frozenset({"self.n"}), {"self.n": 2}, False)
    assert presence_of([*outcomes(({"self.n": 1}, True)), changed]) is None


def test_what_only_changed_fields_build_is_told_as_such() -> None:
    changed = Outcome(0, frozenset({"self.n"}), {"self.n": 2}, True)
    found = presence_of([*outcomes(({"self.n": 1}, False)), changed])
    assert found is not None
    assert (found.built, found.condition) == (0, None)
    assert found.reason == "it was only built with changed fields or inputs"
