"""Recorded sizes of what enters a loop, where the code tells only the rounds after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.sizes import SizeSource
from tests.sizes.inference import carried, compact
from tests.sizes.test_evidence import recorded, sources

LAYER = "nn.Dense(self.w)"
LOOP = "y = x.reshape(x.shape[0], -1)\nfor i in range(3):\n    {}y = " + LAYER + "(y)\nreturn y"


def entry(v: Any, i: int) -> int:
    """Twice the last axis of the input in the first round, the layer's width in the others."""
    return int(v["self.w"] if i else 2 * v["x.shape[-1]"])


def of(tmp_path: Path, body: str, size: Any, count: int = 3) -> Any:
    source = compact(body, "n: int;w: int")
    return recorded(tmp_path, source, {LAYER: size}, {"n": 3, "w": 4}, count=count)[0]


def test_a_loop_starts_from_the_size_that_its_first_round_was_recorded_with(
    tmp_path: Path,
) -> None:
    result = of(tmp_path, LOOP.format(""), entry)
    assert carried(result) == [("y_features", "2 * in_features", "self.w")]
    assert sources(result) == [SizeSource.RECORDED]
    assert "2 * x.shape[-1] is how it was recorded" in result.review[0][1]


@pytest.mark.parametrize(
    ("body", "size", "count"),
    [
        (LOOP.format(""), lambda v, i: entry(v, i) + (i == 2), 3),
        (LOOP.format(""), lambda v, i: entry(v, 1 - i) if i < 2 else 4, 3),
        (LOOP.format(""), lambda v, i: 7 if v["x.shape[-1]"] == 5 else entry(v, i), 3),
        (LOOP.format(""), entry, 2),
        (LOOP.format("if i == 0:\n        continue\n    "), entry, 3),
        (LOOP.format("y = mystery(y)\n    "), entry, 3),
    ],
    ids=[
        "another later round",
        "the second round first",
        "no expression",
        "fewer rounds",
        "a round left out",
        "changed in each round",
    ],
)
def test_without_rounds_that_agree_the_size_is_asked_for(
    tmp_path: Path, body: str, size: Any, count: int
) -> None:
    result = of(tmp_path, body, size, count)
    assert ("y_features", "2 * in_features", "self.w") not in carried(result)
    assert SizeSource.RECORDED not in sources(result)
