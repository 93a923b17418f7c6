"""Sizes of classes that stand in functions: what they read from around them."""

from __future__ import annotations

import pytest

from nnx_migrate.sizes import analyse
from tests.sizes.inference import in_features, project_of

LAYER = """\
    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(2)(nn.Dense(width)(x))
"""


def second(function: str) -> str | None:
    """The size between the two layers of a class that stands in ``function``."""
    sizes = analyse(project_of({"m": "width = 3\n" + function + LAYER}))
    after, _ = in_features(sizes["m.make.<locals>.Layer"])
    return after


@pytest.mark.parametrize(
    ("function", "size"),
    [
        ("def make():\n    width = 5\n", "5"),
        ("def make():\n    width = compute()\n", "width"),
        ("def make(width):\n", "width"),
        ("def make(*, width):\n", "width"),
        ("def make(heads):\n    width = heads * 8\n", "width"),
        ("def make():\n    depth = 5\n    width = depth + 1\n", "6"),
    ],
    ids=["constant", "call", "parameter", "keyword", "of a parameter", "of another local"],
)
def test_a_size_comes_from_the_function_around_the_class(function: str, size: str) -> None:
    assert second(function) == size


def test_a_local_value_is_not_read_from_the_module() -> None:
    assert second("def make():\n    global_width = 1\n    width = global_width\n") == "1"


@pytest.mark.parametrize(
    "function",
    [
        "def make(width):\n    width = width + 1\n",
        "def make():\n    width = 5\n    width += 1\n",
        "def make(width):\n    def grow():\n        nonlocal width\n        width += 1\n",
        "def make():\n    width = 5\n    def grow():\n        nonlocal width\n        width += 1\n",
        "def make(x):\n    if (width := len(x)):\n        pass\n",
    ],
)
def test_a_name_that_is_bound_again_is_no_size(function: str) -> None:
    assert second(function) == "Dense_0_in_features"
