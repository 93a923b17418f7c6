"""Sizes that a loop changes are compared, round by round, with what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.sizes import SizeSource
from tests.sizes.inference import compact, problems
from tests.sizes.test_evidence import recorded, sources

FIELDS = {"n": 3, "w": 4}
LAYER = "nn.Dense(self.w)"
LOOP = f"for i in range(self.n):\n    x = {LAYER}(x)\nreturn x"


def entry_then_width(v: Any, i: int) -> int:
    """The width of the input in the first round, that of the layer in the others."""
    return int(v["x.shape[-1]"] if i == 0 else v["self.w"])


def of(tmp_path: Path, body: str, size: Any, count: int = 3, call: str = LAYER) -> Any:
    result, _ = recorded(
        tmp_path, compact(body, "n: int;w: int"), {call: size}, dict(FIELDS), count=count
    )
    return result


def test_a_carried_size_that_every_round_has_is_from_both(tmp_path: Path) -> None:
    result = of(tmp_path, LOOP, entry_then_width)
    assert (sources(result), problems(result)) == ([SizeSource.BOTH], [])


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (lambda v, i: 7 if i == 2 else entry_then_width(v, i), "is 4, the recorded call has 7"),
        (lambda v, i: v["x.shape[-1]"], "is 4, the recorded call has 5"),
        (lambda v, i: v["self.w"], "is 5, the recorded call has 4"),
    ],
    ids=["another third round", "the entry in all rounds", "another entry"],
)
def test_a_carried_size_that_some_round_contradicts_refuses_the_class(
    tmp_path: Path, size: Any, told: str
) -> None:
    (problem,) = problems(of(tmp_path, LOOP, size))
    assert "the code and the recorded calls disagree on in_features" in problem
    assert told in problem


@pytest.mark.parametrize(
    ("body", "size", "count"),
    [
        (
            f"for i in range(self.n):\n    x = nn.Dense(i + 2)(x)\nreturn {LAYER}(x)",
            lambda v, i: v["self.n"] + 1,
            1,
        ),
        (
            f"for i in range(self.n):\n    if i > 0:\n        x = {LAYER}(x)\nreturn x",
            lambda v, i: entry_then_width(v, i),
            2,
        ),
        (
            f"for w in reversed([self.w, 8, 9]):\n    x = {LAYER}(x)\nreturn x",
            entry_then_width,
            3,
        ),
        (
            f"for i in range(self.n):\n    for j in range(2):\n        x = {LAYER}(x)\nreturn x",
            entry_then_width,
            6,
        ),
    ],
    ids=["after the loop", "under a condition", "over a list", "a loop in a loop"],
)
def test_rounds_are_run_as_the_code_runs_them(
    tmp_path: Path, body: str, size: Any, count: int
) -> None:
    result = of(tmp_path, body, size, count)
    assert problems(result) == []
    assert SizeSource.BOTH in sources(result)


@pytest.mark.parametrize(
    "loop",
    [
        f"for i in range(self.n):\n    x = {LAYER}(x)\n    if x.sum() > 0:\n        break",
        f"for i in range(self.n):\n    if x.sum() > 0:\n        x = {LAYER}(x)",
        f"for i in range(some()):\n    x = {LAYER}(x)",
        f"for i in range(3 + 10**9 * self.n):\n    x = {LAYER}(x)",
        f"for i in range(self.n / 1):\n    x = {LAYER}(x)",
        f"for i in range(0, 3, self.n - self.n):\n    x = {LAYER}(x)",
        f"for i in enumerate([1, 2, 3], 1):\n    x = {LAYER}(x)",
        f"for i, j in range(self.n):\n    x = {LAYER}(x)",
    ],
    ids=[
        "break",
        "an unknown condition",
        "unknown items",
        "too many",
        "a fraction",
        "no step",
        "another start",
        "no pairs",
    ],
)
def test_rounds_that_the_recording_does_not_tell_are_compared_with_nothing(
    tmp_path: Path, loop: str
) -> None:
    result = of(tmp_path, f"{loop}\nreturn x", entry_then_width)
    assert SizeSource.BOTH not in sources(result)
    assert not any("disagree" in one for one in problems(result))


def test_more_or_fewer_calls_than_rounds_are_compared_with_nothing(tmp_path: Path) -> None:
    for count in (2, 4):
        folder = tmp_path / str(count)
        folder.mkdir()
        assert SizeSource.BOTH not in sources(of(folder, LOOP, entry_then_width, count))
