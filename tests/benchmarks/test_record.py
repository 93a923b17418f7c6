"""The figures of ``python -m benchmarks.record``."""

from __future__ import annotations

import pytest

from benchmarks.record.__main__ import Cost, Run, cost_of, faults, measure, text

PLAIN = [Run(12.0, 10.0), Run(11.0, 9.0)]


def test_watching_and_tracing_are_told_apart() -> None:
    cost = cost_of(PLAIN, [Run(18.9, 9.9), Run(17.0, 10.0)], 7)
    assert cost == Cost(pytest.approx(1.1), pytest.approx(5.0), pytest.approx(16.9 / 11.0), 7)


def test_the_best_of_each_counts() -> None:
    assert cost_of(PLAIN, [Run(30.0, 28.0), Run(11.0, 9.0)], 1) == Cost(1.0, 0.0, 1.0, 1)


@pytest.mark.parametrize(
    ("cost", "found"),
    [
        (Cost(1.02, 3.0, 1.2, 5), []),
        (Cost(1.5, 3.0, 1.6, 5), ["watching costs 1.500, more than 1.15"]),
        (Cost(1.0, 0.0, 1.0, 0), ["nothing was recorded"]),
    ],
)
def test_what_is_a_fault(cost: Cost, found: list[str]) -> None:
    assert faults(cost) == found


def test_a_person_reads_three_figures() -> None:
    assert text(Cost(1.02, 3.04, 1.25, 5)).splitlines() == [
        "the program while its calls are watched: 1.020 of its time without",
        "tracing when the process ends: 3.0 s for 5 instances",
        "the whole process: 1.25 of its time without",
    ]


@pytest.mark.slow
def test_the_program_is_measured_with_and_without() -> None:
    cost = measure(1)
    assert cost.instances >= 15
    assert cost.watching > 0.3
    assert cost.tracing > 0.0
