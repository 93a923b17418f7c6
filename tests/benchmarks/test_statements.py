"""Random classes of plain Python: they are drawn from their seeds alone, and what differs is said."""

from __future__ import annotations

import ast

import pytest

from benchmarks.statements.classes import drawn
from benchmarks.statements.grammar import ALWAYS, SOME, UNUSUAL
from benchmarks.statements.grammar.topics import Grammar
from benchmarks.statements.running import Outcome, batches, compared


def test_a_class_is_that_of_its_seed_and_parses() -> None:
    classes = [drawn(seed) for seed in range(100)]
    assert [one.text for one in classes] == [drawn(seed).text for seed in range(100)]
    for one in classes:
        last = ast.parse(one.text).body[-1]
        assert isinstance(last, ast.ClassDef)
        assert last.name == one.name
        assert one.build.startswith(f"{one.name}(")


@pytest.mark.parametrize("text", [":= ", "while ", "try:", "nonlocal ", "del ", "next("])
def test_most_classes_have_the_statements_of_published_code_alone(text: str) -> None:
    count = sum(text in drawn(seed).text for seed in range(200))
    assert 0 < count < 40


@pytest.mark.parametrize(
    "text",
    ["super().__call__", "super().setup()", "@property", "nn.scan", "nn.BatchNorm", "self.sow("],
)
def test_classes_are_of_all_topics(text: str) -> None:
    assert any(text in drawn(seed).text for seed in range(300))


def test_every_kind_that_a_template_names_is_drawn_or_known() -> None:
    grammar = Grammar.of([*ALWAYS, *SOME, *UNUSUAL])
    assert set(grammar.expressions) >= {"int", "list", "dict", "test", "layer", "rows", "flat"}
    assert set(grammar.statements) == {"plain", "nested", "compact", "call", "setup"}


def test_ten_classes_compute_the_same() -> None:
    outcomes = list(compared(next(batches(0, 10))))
    assert [one.differs for one in outcomes] == [""] * 10
    assert {one.form for one in outcomes} == {"explicit", "lazy"}
    assert [one.form == "lazy" for one in outcomes] == [one.reason != "" for one in outcomes]


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
