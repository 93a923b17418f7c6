"""Random classes of plain Python: they are drawn from their seeds alone, and what differs is said."""

from __future__ import annotations

import ast

from benchmarks.statements.drawing import drawn
from benchmarks.statements.running import Outcome, batches, compared


def test_a_class_is_that_of_its_seed_and_parses() -> None:
    classes = [drawn(seed) for seed in range(100)]
    assert [one.text for one in classes] == [drawn(seed).text for seed in range(100)]
    for one in classes:
        assert isinstance(ast.parse(one.text).body[0], ast.ClassDef)
        assert one.build.startswith(f"{one.name}(")


def test_ten_classes_compute_the_same() -> None:
    outcomes = list(compared(next(batches(0, 10))))
    assert [one.differs for one in outcomes] == [""] * 10
    assert {one.form for one in outcomes} == {"explicit", "lazy"}


def test_what_differs_is_said_with_its_place() -> None:
    one = ("['kernel']", (2, 3), "aa")
    silent = Outcome("C0", "explicit", [one], [("['kernel']", (2, 4), "bb")])
    assert silent.differs.startswith("silent")
    assert "['kernel']" in silent.differs
    assert Outcome("C0", "explicit", [one], [one, one]).differs
    assert Outcome("C0", "lazy", [one], "TypeError: no").differs == "raises TypeError: no"


def test_a_changed_result_is_found_among_those_that_ran() -> None:
    batch = next(batches(0, 2))
    places = batch[0][1]
    assert isinstance(places, list)
    path, shape, _ = places[0]
    changed = [(path, shape, "other"), *places[1:]]
    outcomes = list(compared([(batch[0][0], changed), batch[1]]))
    assert [bool(one.differs) for one in outcomes] == [True, False]
