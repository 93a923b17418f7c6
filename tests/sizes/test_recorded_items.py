"""Recorded sizes that are items of a field, one for each round of a loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.sizes import SizeSource
from tests.sizes.inference import compact, sites
from tests.sizes.test_evidence import recorded, sources

LAYER = "nn.Dense(self.w)"
LOOP = "y = x\nfor i in {}:\n    {}\n    y = " + LAYER + "(mystery(y))\nreturn y"
IN_RANGE = LOOP.format("range(len(self.widths))", "pass")
WIDTHS = {"widths": (6, 10, 14), "w": 3}


def item(v: Any, i: int) -> int:
    return int(v[f"self.widths[{i}]"])


def of(
    tmp_path: Path, body: str, size: Any, fields: dict[str, Any] | None = None, count: int = 3
) -> Any:
    source = compact(body, "widths: tuple;w: int;others: tuple = ()")
    return recorded(tmp_path, source, {LAYER: size}, fields or WIDTHS, count=count)[0]


@pytest.mark.parametrize(
    "loop", ["range(len(self.widths))", "range(3)", "range(0, len(self.widths), 1)"]
)
def test_the_item_that_the_loop_counts_is_the_size(tmp_path: Path, loop: str) -> None:
    result = of(tmp_path, LOOP.format(loop, "pass"), item)
    assert sites(result)[LAYER] == {"in_features": "self.widths[i]"}
    assert sources(result) == [SizeSource.RECORDED]
    assert "self.widths[i] is how it was recorded" in result.review[0][1]


def test_in_nested_loops_it_is_counted_by_the_loop_that_gives_every_round(tmp_path: Path) -> None:
    body = (
        "y = x\nfor i in range(len(self.widths)):\n    for j in range(2):\n"
        f"        y = {LAYER}(mystery(y))\nreturn y"
    )
    result = of(tmp_path, body, lambda v, i: item(v, i // 2), count=6)
    assert sites(result)[LAYER] == {"in_features": "self.widths[i]"}


@pytest.mark.parametrize(
    ("size", "widths"),
    [
        (lambda v, i: item(v, i) + 1, (6, 10, 14)),
        (lambda v, i: item(v, (i + 1) % 3), (6, 10, 14)),
        (lambda v, i: [6, 10, 14][i], (6, 10, 14)),
        (item, (6,)),
    ],
    ids=["one more", "another item", "never moved", "one round"],
)
def test_what_the_rounds_do_not_show_is_no_item(
    tmp_path: Path, size: Any, widths: tuple[int, ...]
) -> None:
    result = of(tmp_path, IN_RANGE, size, {**WIDTHS, "widths": widths}, len(widths))
    assert "self.widths[i]" not in str(sites(result))


def test_of_two_fields_with_the_same_items_the_traces_tell_which(tmp_path: Path) -> None:
    result = of(tmp_path, IN_RANGE, item, {**WIDTHS, "others": (6, 10, 14)})
    assert sites(result)[LAYER] == {"in_features": "self.widths[i]"}


@pytest.mark.parametrize(
    ("loop", "first"),
    [
        ("range(len(self.widths))", "i = i + 0"),
        ("range(len(self.widths))", "for i in range(len(self.widths)): break"),
        ("range(some(self))", "pass"),
        ("range(len(self.widths))", "if mystery(i): continue"),
        ("reversed(range(len(self.widths)))", "pass"),
    ],
)
def test_a_loop_that_does_not_simply_count_gives_no_item(
    tmp_path: Path, loop: str, first: str
) -> None:
    result = of(tmp_path, LOOP.format(loop, first), item)
    assert "self.widths[i]" not in str(sites(result))


def test_a_name_range_of_the_users_own_is_not_the_builtin(tmp_path: Path) -> None:
    source = compact(IN_RANGE, "widths: tuple;w: int", before="def range(n):\n    return [2, 1, 0]")
    result, _ = recorded(tmp_path, source, {LAYER: item}, WIDTHS, count=3)
    assert "self.widths[i]" not in str(sites(result))
