"""Recorded sizes of layers that a function outside the class builds for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.sizes import SizeSource
from tests.sizes.inference import compact, sites
from tests.sizes.test_evidence import recorded, sources

HEAD = "def head(x, width):\n    return nn.Dense(width)(x)\n"
OVER_TWO = "def head(x, width):\n    return nn.DenseGeneral(width, axis=(-2, -1))(x)\n"
THROUGH = HEAD + "def outer(x, width):\n    return nn.relu(head(x, width))\n"


def of(tmp_path: Path, before: str, body: str, sizes: dict[str, Any]) -> Any:
    return recorded(tmp_path, compact(body, "w: int = 4", before=before), sizes, {"w": 4})[0]


def doubled(v: Any, i: int) -> int:
    return int(2 * v["x.shape[-1]"])


def test_the_recorded_size_is_passed_to_the_function(tmp_path: Path) -> None:
    result = of(tmp_path, HEAD, "return head(mystery(x), 3)", {"nn.Dense(width)": doubled})
    assert sites(result)["head(mystery(x), 3)"] == {"in_features": "2 * in_features"}
    assert sources(result) == [SizeSource.RECORDED]


def test_a_shape_of_which_the_layer_reads_two_axes_is_passed_as_these(tmp_path: Path) -> None:
    def seen(v: Any, i: int) -> tuple[int, int]:
        return v["self.w"], v["x.shape[-1]"]

    result = of(
        tmp_path,
        OVER_TWO,
        "return head(mystery(x), 3)",
        {"nn.DenseGeneral(width, axis=(-2, -1))": seen},
    )
    assert list(sites(result).values()) == [{"x_shape": "(self.w, in_features)"}]


@pytest.mark.parametrize(
    ("before", "body"),
    [
        (HEAD, "x = head(mystery(x), 3)\nreturn head(mystery(x), 3)"),
        (HEAD, "x = head(mystery(x), 3)\nif self.w > 9:\n    x = head(mystery(x), 3)\nreturn x"),
        (THROUGH, "x = head(mystery(x), 3)\nreturn outer(mystery(x), 3)"),
        (
            HEAD.replace("return", "y = x.sum()\n    return"),
            "return head(mystery(x), 3) + head(mystery(y), 3)",
        ),
    ],
    ids=["two calls", "a conditional call", "also through another function", "in one expression"],
)
def test_where_several_calls_may_have_built_it_no_size_is_used(
    tmp_path: Path, before: str, body: str
) -> None:
    result = of(tmp_path, before, body, {"nn.Dense(width)": doubled})
    assert SizeSource.RECORDED not in sources(result)


def test_a_size_that_counts_rounds_of_the_functions_own_loop_is_not_used(tmp_path: Path) -> None:
    before = (
        "def head(x, width):\n    for i in range(2):\n        x = mystery(nn.Dense(width)(x))\n"
        "    return x\n"
    )
    result = of(tmp_path, before, "return head(mystery(x), 3)", {"nn.Dense(width)": doubled})
    assert SizeSource.RECORDED not in sources(result)
