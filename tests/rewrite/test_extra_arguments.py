"""Which classes get the shape of an input."""

from __future__ import annotations

import ast
from types import SimpleNamespace

from nnx_migrate.rewrite.classes import ClassRefusal
from nnx_migrate.rewrite.classes.data import Wants
from nnx_migrate.rewrite.decide import Decisions
from nnx_migrate.rewrite.extra_arguments import ExtraArguments


def decisions(**wants: str) -> Decisions:
    node = ast.Pass()
    refused = {
        name: ClassRefusal(node, "reason", "recipe", "rule", Wants(frozenset(one.split())))
        for name, one in wants.items()
    }
    return Decisions(refusals=refused)


def shapes_of(wanted: ExtraArguments) -> dict[str, frozenset[str]]:
    return {name: one.shapes for name, one in wanted.by_class().items()}


def test_a_refused_class_gets_the_shape_it_wants() -> None:
    wanted = ExtraArguments()
    assert wanted.learn(decisions(A="x", B=""), {})
    assert shapes_of(wanted) == {"A": frozenset({"x"})}
    assert not wanted.learn(decisions(B=""), {})


def test_a_class_that_is_refused_all_the_same_loses_it_for_good() -> None:
    wanted = ExtraArguments()
    wanted.learn(decisions(A="x"), {})
    assert wanted.learn(decisions(A=""), {})
    assert shapes_of(wanted) == {}
    assert not wanted.learn(decisions(A="x"), {})


def test_a_class_whose_caller_cannot_pass_the_shape_on_loses_it() -> None:
    wanted = ExtraArguments({"Caller": ["Block"], "Block": ["A"], "Other": ["B"]})
    before = decisions(A="x", B="x")
    made = {name: SimpleNamespace(holds_lazy=False) for name in ("Caller", "Other")}
    before.conversions = dict(made)  # type: ignore[assignment]
    wanted.learn(before, {})
    after = decisions(Caller="")
    after.conversions = {"Other": made["Other"]}  # type: ignore[dict-item]
    assert wanted.learn(after, {})
    assert shapes_of(wanted) == {"B": frozenset({"x"})}


def test_a_class_that_holds_the_other_as_a_lazy_one_loses_nothing_by_its_argument() -> None:
    wanted = ExtraArguments({"Caller": ["A"]})
    before = decisions(A="x")
    before.conversions = {"Caller": SimpleNamespace(holds_lazy=True)}  # type: ignore[dict-item]
    wanted.learn(before, {})
    assert not wanted.learn(decisions(Caller=""), {})
    assert shapes_of(wanted) == {"A": frozenset({"x"})}


def test_learning_ends() -> None:
    wanted = ExtraArguments()
    rounds = [wanted.learn(decisions(**{f"A{number}": "x"}), {}) for number in range(9)]
    assert rounds[-1] is False
    assert sum(rounds) < 9
