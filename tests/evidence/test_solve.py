"""From observed sizes to an expression, or to no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnx_migrate.evidence.solve import Answer, Observation, solve

Sources = Mapping[str, float]


def observe(
    sources: Sources,
    size: Callable[[Sources], int],
    *,
    instance: int = 0,
    stuck: tuple[str, ...] = (),
    tied: tuple[tuple[str, ...], ...] = (),
    pairs: bool = True,
) -> list[Observation]:
    """What scaling probes show of a size: every source alone, tied ones together, and pairs."""
    bound = {name for group in tied for name in group}
    groups = [(name,) for name in sources if name not in bound and name not in stuck] + list(tied)
    plans: list[dict[str, float]] = [{}]
    for group in groups:
        plans += [{name: sources[name] * factor for name in group} for factor in (2, 3)]
    if pairs:
        for one, two in combinations(groups, 2):
            plans.append({**{n: sources[n] * 2 for n in one}, **{n: sources[n] * 3 for n in two}})
    found = []
    for changes in plans:
        environment = {**sources, **changes}
        found.append(Observation(instance, frozenset(changes), environment, size(environment)))
    return found


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("self.a", {"self.a": 12, "self.b": 5}),
        ("4 * self.a", {"self.a": 12, "self.b": 5}),
        ("self.a // self.b", {"self.a": 12, "self.b": 3}),
        ("self.a // 4", {"self.a": 12, "self.b": 5}),
        ("self.a * self.b", {"self.a": 12, "self.b": 5}),
        ("self.a + self.b", {"self.a": 12, "self.b": 5}),
        ("2 * self.a + 1", {"self.a": 12, "self.b": 5}),
        ("x.shape[-3] * x.shape[-2] * x.shape[-1]", {f"x.shape[-{i}]": 7 - i for i in (3, 2, 1)}),
        ("self.b + self.a * self.c", {"self.a": 12, "self.b": 5, "self.c": 7}),
        ("int(self.a * self.ratio)", {"self.a": 12, "self.ratio": 1.5}),
        ("x.shape[-1] + index * self.a", {"x.shape[-1]": 9, "self.a": 4, "index": 1}),
    ],
)
def test_a_size_is_the_expression_that_all_probes_agree_on(text: str, sources: Sources) -> None:
    def size(environment: Sources) -> int:
        code = text
        for name in sorted(environment, key=len, reverse=True):
            code = code.replace(name, f"({environment[name]!r})")
        return int(eval(code))

    assert solve(observe(sources, size)) == Answer(text)


def test_a_literal_is_an_answer_when_every_source_was_moved() -> None:
    assert solve(observe({"self.a": 12}, lambda e: 64)).expression == "64"


@pytest.mark.parametrize(
    ("size", "is_hidden"),
    [
        (lambda e: 24, True),
        (lambda e: 2, True),
        (lambda e: 24 * e["self.a"], True),
        (lambda e: e["self.a"] + 24, True),
        (lambda e: 1, False),
        (lambda e: 4 * e["self.a"], False),
        (lambda e: e["self.a"], False),
    ],
)
def test_a_literal_that_may_stand_in_what_was_not_written_down_is_no_answer(
    size: Callable[[Sources], int], is_hidden: bool
) -> None:
    answer = solve(observe({"self.a": 12}, size), {0: "Config"})
    assert (answer.expression is None) is is_hidden
    assert ("may stand in a Config, which is not written down" in answer.reason) is is_hidden


def test_one_instance_without_hidden_parts_is_enough_for_a_literal() -> None:
    seen = [
        *observe({"self.a": 12}, lambda e: 24),
        *observe({"self.a": 8}, lambda e: 24, instance=1),
    ]
    assert solve(seen, {0: "Config"}).expression == "24"
    assert solve(seen, {0: "Config", 1: "Config"}).expression is None


@pytest.mark.parametrize("stuck", [16, 8, 32])
def test_a_literal_that_a_stuck_source_may_explain_is_no_answer(stuck: int) -> None:
    seen = observe({"self.a": 12, "self.b": stuck}, lambda e: 16, stuck=("self.b",))
    answer = solve(seen)
    assert answer.expression is None
    assert "self.b, which no trace could change" in answer.reason


def test_a_factor_that_a_stuck_source_may_explain_is_no_answer() -> None:
    seen = observe({"self.a": 12, "self.b": 3}, lambda e: int(3 * e["self.a"]), stuck=("self.b",))
    assert solve(seen).expression is None


def test_another_instance_clears_a_suspected_literal() -> None:
    one = observe({"self.a": 12, "self.b": 16}, lambda e: 16, stuck=("self.b",))
    two = observe({"self.a": 12, "self.b": 5}, lambda e: 16, stuck=("self.b",), instance=1)
    assert solve([*one, *two]).expression == "16"


def test_tied_sources_answer_with_the_classs_own_field_and_tell_the_other() -> None:
    sources = {"self.filters": 6, "x.shape[-1]": 6}
    tied = (("self.filters", "x.shape[-1]"),)
    answer = solve(observe(sources, lambda e: int(e["x.shape[-1]"]), tied=tied))
    assert answer == Answer("self.filters", ("x.shape[-1]",))


def test_an_instance_that_separates_tied_sources_decides() -> None:
    tied = (("self.filters", "x.shape[-1]"),)
    one = observe({"self.filters": 6, "x.shape[-1]": 6}, lambda e: int(e["x.shape[-1]"]), tied=tied)
    two = [Observation(1, frozenset(), {"self.filters": 6, "x.shape[-1]": 4}, 4)]
    assert solve([*one, *two]) == Answer("x.shape[-1]")


def test_a_product_and_a_sum_that_fit_alike_are_no_answer() -> None:
    seen = observe(
        {"self.a": 4, "self.b": 6}, lambda e: int(e["self.a"] * e["self.b"]), pairs=False
    )
    answer = solve(seen)
    assert answer.expression is None
    assert "fit alike" in answer.reason


def test_an_instance_that_disagrees_leaves_no_answer() -> None:
    one = observe({"self.a": 4}, lambda e: int(2 * e["self.a"]))
    two = [Observation(1, frozenset(), {"self.a": 5}, 11)]
    assert solve([*one, *two]).expression is None


def test_a_size_that_a_flag_moves_has_no_answer() -> None:
    def size(environment: Sources) -> int:
        return int(environment["self.a"] * (2 if environment["self.both"] else 1))

    seen = observe({"self.a": 4, "self.both": True}, size, stuck=("self.both",))
    seen.append(Observation(0, frozenset({"self.both"}), {"self.a": 4, "self.both": False}, 4))
    assert solve(seen).expression is None


def test_a_size_never_seen_in_a_recorded_instance_has_no_answer() -> None:
    assert solve([Observation(0, frozenset({"self.a"}), {"self.a": 4}, 4)]).expression is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(2, 40), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.integers(0, 5),
    st.booleans(),
)
def test_an_answer_gives_the_size_of_unseen_sources_too(
    values: list[int], factors: list[int], constant: int, multiplied: bool
) -> None:
    sources = {f"self.f{i}": value for i, value in enumerate(values)}

    def size(environment: Sources) -> int:
        parts = list(environment.values())
        total = constant + sum(b * v for b, v in zip(factors, parts, strict=False))
        return int(total + parts[0] * parts[-1]) if multiplied else int(total)

    answer = solve(observe(sources, size))
    unseen = {name: 5 * value + 7 for name, value in sources.items()}
    if answer.expression is not None:
        code = answer.expression
        for name, value in unseen.items():
            code = code.replace(name, str(value))
        assert eval(code) == size(unseen)
