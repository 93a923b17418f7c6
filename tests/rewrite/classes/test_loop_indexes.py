"""Loops over sequences that build: they count their rounds, so that names need no counter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.rewrite.running import compare, migrated

HEADER = """\
from collections.abc import Sequence

import flax.linen as nn
import jax.numpy as jnp


class Model(nn.Module):
    sizes: Sequence[int] = (4, 3, 5)
    more: bool = True

    @nn.compact
    def __call__(self, x, i: int = 1):
"""
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)

# A body, and lines of what it becomes.
COUNTED: dict[str, tuple[str, list[str]]] = {
    "a layer each": (
        "for size in self.sizes:\n    x = nn.Dense(size)(x)\nreturn x",
        [
            "for j, size in enumerate(self.sizes):",
            'setattr(self, f"Dense_{j}", nnx.Linear(x_features, size, rngs=rngs))',
            'x = getattr(self, f"Dense_{j}")(x)',
        ],
    ),
    "two layers each": (
        "for size in self.sizes:\n    x = nn.Dense(size)(nn.Dense(3)(x))\nreturn x",
        ['getattr(self, f"Dense_{2 * j}")(getattr(self, f"Dense_{2 * j + 1}")(x))'],
    ),
    "a layer before and one after": (
        "x = nn.Dense(6)(x)\nfor size in self.sizes:\n    x = nn.Dense(size)(x)\nreturn nn.Dense(2)(x)",
        ["self.Dense_0 = ", 'f"Dense_{j + 1}"', 'getattr(self, f"Dense_{len(self.sizes) + 1}")(x)'],
    ),
    "a slice, and one more": (
        "for size in self.sizes[:-1]:\n    x = nn.Dense(size)(x)\nreturn nn.Dense(self.sizes[-1])(x)",
        ["in enumerate(self.sizes[:-1]):", 'f"Dense_{len(self.sizes[:-1])}"'],
    ),
    "two names at once": (
        "for a, b in zip(self.sizes, (True, False, True)):\n"
        + "    x = nn.Dense(a, use_bias=b)(x)\nreturn x",
        ["for j, (a, b) in enumerate(zip(self.sizes, (True, False, True))):"],
    ),
    "rounds without a name": (
        "for _ in range(2):\n    x = nn.Dense(6)(x)\nreturn x",
        ["for j in range(2):", 'f"Dense_{j}"'],
    ),
    "rounds whose name is read": (
        "for _ in range(2):\n    x = nn.Dense(4 + _)(x)\nreturn x",
        ["for _ in range(2):", 'f"Dense_{_}"'],
    ),
    "loops in loops": (
        "for a in (4, 5):\n    for b in (True, False, True):\n"
        + "        x = nn.Dense(a, use_bias=b)(x)\nreturn nn.Dense(2)(x)",
        ["for j, a in enumerate((4, 5)):", "for k, b in ", 'f"Dense_{3 * j + k}"', "self.Dense_6("],
    ),
    "one loop after another": (
        "for size in self.sizes:\n    x = nn.Dense(size)(x)\n"
        + "for size in self.sizes:\n    x = nn.Dense(size)(x)\nreturn x",
        ['f"Dense_{len(self.sizes) + j}"'],
    ),
    "a loop that has an index": (
        "for n, size in enumerate(self.sizes):\n    x = nn.Dense(size)(x)\nreturn nn.Dense(2)(x)",
        ["for n, size in enumerate(self.sizes):", 'f"Dense_{len(self.sizes)}"'],
    ),
}

COUNTER: dict[str, str] = {
    "a round that may end early": (
        "for size in self.sizes:\n    if size == 4:\n        continue\n    x = nn.Dense(6)(x)\nreturn x"
    ),
    "a loop that may end early": (
        "for size in self.sizes:\n    x = nn.Dense(6)(x)\n    if size == 3:\n        break\nreturn x"
    ),
}

NUMBERED = {
    "a condition in the loop": (
        "for size in self.sizes:\n    if size > 3:\n        x = nn.Dense(6)(x)\nreturn x",
        ["for j, size in enumerate(self.sizes):", 'f"dense_{j}"'],
    ),
    "a layer after a loop of nobody knows how many": (
        "for size in zip(self.sizes):\n    x = nn.Dense(6)(x)\nreturn nn.Dense(2)(x)",
        ["for j, size in enumerate(zip(self.sizes)):", 'f"dense_0_{j}"', "self.dense_1("],
    ),
}


def source(body: str) -> str:
    return HEADER + "".join(f"        {line}\n" for line in body.split("\n"))


@pytest.mark.parametrize(("body", "lines"), COUNTED.values(), ids=COUNTED)
def test_the_loop_counts_its_rounds(body: str, lines: list[str]) -> None:
    text = migrated(source(body))
    assert "LinenNames" not in text
    assert [line for line in lines if line not in text] == []


@pytest.mark.parametrize("body", COUNTER.values(), ids=COUNTER)
def test_other_names_are_counted_when_the_code_runs(body: str) -> None:
    assert "names('Dense')" in migrated(source(body))


@pytest.mark.parametrize(("body", "lines"), NUMBERED.values(), ids=NUMBERED)
def test_attributes_whose_number_in_linen_nobody_knows_count_the_rounds(
    body: str, lines: list[str]
) -> None:
    text = migrated(source(body))
    assert '@nnm.named_in_linen("dense")' in text
    assert [line for line in lines if line not in text] == []


BODIES = {name: body for name, (body, _) in {**COUNTED, **NUMBERED}.items()}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_paths_and_values_are_linens(body: str) -> None:
    sizes: dict[str, Any] = {"in_features": 6}
    report = compare(source(body), "Model()", sizes, (X,))
    assert report.verdict == "identical", report


def test_no_rounds_build_nothing() -> None:
    body, _ = COUNTED["a layer before and one after"]
    report = compare(source(body), "Model(sizes=())", {"in_features": 6}, (X,))
    assert report.verdict == "identical", report
