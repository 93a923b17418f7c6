"""Counting what becomes of flax's own module tests."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.linen_tests.classes import read
from benchmarks.linen_tests.outcomes import counts, refusals, verdicts_of

LISTS = {
    "classes": ["a_test.py:A", "a_test.py:T.f.<locals>.B", "a_test.py:T.f.<locals>.B"],
    "initialised": ["a_test.py:A", "a_test.py:T.f.<locals>.B"],
}


def entry(name: str, outcome: str, **more: Any) -> dict[str, Any]:
    return {"name": f"a_test.{name}", "path": "a_test.py", "line": 1, "outcome": outcome, **more}


REPORT = {
    "classes": [
        entry("A", "rewritten"),
        entry("T.f.<locals>.B", "refused", reason="'x' is no size"),
        entry("T.f.<locals>.B", "refused", reason="'y' is no size"),
    ]
}


def test_the_frozen_list_has_all_classes_and_those_that_were_initialised() -> None:
    lists = read()
    assert len(lists["classes"]) == 399
    assert set(lists["initialised"]) <= set(lists["classes"])
    assert not set(lists["initialised"]) & set(lists["not_initialised"])


def test_statements_are_counted_and_classes_of_the_denominator_once() -> None:
    found = counts(LISTS, REPORT, {"a_test.py:A": "identical"})
    assert found.of_all == {"rewritten": 1, "bridged": 0, "refused": 2, "kept": 0}
    assert found.of_initialised == {"rewritten": 1, "bridged": 0, "refused": 1, "kept": 0}
    assert (found.at_parity, found.unreported) == (1, ())


@pytest.mark.parametrize("outcomes", [("rewritten", "refused"), ("refused", "rewritten")])
def test_of_two_statements_of_one_name_both_have_to_be_rewritten(outcomes: tuple[str, str]) -> None:
    statements = [entry("T.f.<locals>.B", one) for one in outcomes]
    found = counts(LISTS, {"classes": statements}, {"a_test.py:T.f.<locals>.B": "identical"})
    assert (found.of_initialised["rewritten"], found.at_parity) == (0, 0)


@pytest.mark.parametrize("verdict", ["different", "cannot run", "not compared"])
def test_only_what_was_compared_and_agrees_is_at_parity(verdict: str) -> None:
    assert counts(LISTS, REPORT, {"a_test.py:A": verdict}).at_parity == 0


def test_a_class_that_is_not_rewritten_has_no_verdict() -> None:
    found = counts(LISTS, REPORT, {"a_test.py:T.f.<locals>.B": "identical"})
    assert found.verdicts == {"not compared": 1}


def test_a_class_that_the_report_leaves_out_is_named() -> None:
    report = {"classes": REPORT["classes"][:2]}
    assert counts(LISTS, report, {}).unreported == ("a_test.py:T.f.<locals>.B",)


def test_reasons_are_grouped_without_names() -> None:
    assert refusals(LISTS, REPORT) == [("… is no size", ("a_test.py:1", "a_test.py:1"))]


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        (["identical", "equal_by_rules"], "equal_by_rules"),
        (["identical", "different"], "different"),
        (["cannot run", "identical"], "cannot run"),
        (["cannot run", "different"], "different"),
        (["not compared", "identical"], "identical"),
        (["not compared"], "not compared"),
    ],
)
def test_a_class_has_its_worst_verdict(verdicts: list[str], worst: str) -> None:
    rows = [{"module": "a_test.T.f.<locals>.B(x[2])", "verdict": one} for one in verdicts]
    assert verdicts_of(rows) == {"a_test.py:T.f.<locals>.B": worst}


@pytest.mark.parametrize(
    ("details", "verdict"),
    [
        ([["Linen: every number is zero", "NNX: every number is zero"]], "nothing shown"),
        ([["nothing was compared"], ["NNX: every number is zero"]], "nothing shown"),
        ([["nothing was compared: the model has no variables"]], "nothing shown"),
        ([["nothing was compared: the NNX model was not built"]], "different"),
        ([["Linen: every number is zero", "params/a: only in Linen"]], "different"),
        ([["NNX: ValueError: every number is zero here"]], "different"),
        ([], "different"),
    ],
)
def test_models_of_zeros_show_nothing_and_do_not_differ(
    details: list[list[str]], verdict: str
) -> None:
    checks = [{"name": "x", "status": "fail", "details": one} for one in details]
    checks.append({"name": "y", "status": "pass", "details": ["nothing was compared"]})
    row = {"module": "a_test.A(x[2])", "verdict": "different", "report": {"checks": checks}}
    assert verdicts_of([row]) == {"a_test.py:A": verdict}
    assert counts(LISTS, REPORT, {"a_test.py:A": verdict}).at_parity == 0


@pytest.mark.parametrize(
    ("others", "verdict"),
    [
        ([], "cannot run alone"),
        (["not compared"], "cannot run alone"),
        (["identical"], "identical"),
    ],
)
def test_a_call_that_linen_itself_cannot_repeat_alone_says_nothing(
    others: list[str], verdict: str
) -> None:
    row = {"module": "a_test.B(x[2])", "verdict": "cannot run"}
    before = {**row, "detail": "before side: the model raised NameError: axis batch"}
    rows = [before, *({**row, "verdict": one} for one in others)]
    assert verdicts_of(rows) == {"a_test.py:B": verdict}
    after = {**row, "detail": "after side: the model raised NameError: axis batch"}
    assert verdicts_of([*rows, after]) == {"a_test.py:B": "cannot run"}


def test_classes_of_one_name_have_the_worst_verdict_among_them() -> None:
    rows = [
        {"module": "a_test.T.f.<locals>.B:1(x[2])", "verdict": "different"},
        {"module": "a_test.T.f.<locals>.B(x[2])", "verdict": "identical"},
    ]
    assert verdicts_of(rows) == {"a_test.py:T.f.<locals>.B": "different"}
