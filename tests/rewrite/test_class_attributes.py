"""Attributes of class bodies that sizes follow from: the first class that has one, its last value."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike

SOURCE = """\
from typing import ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

width = 9


class Mixin:
    width = 3
    other: int = 5


class Net(nn.Module, Mixin):
    BODY

    def setup(self):
        self.first = nn.Dense(self.width)
        self.second = nn.Dense(2)

    def __call__(self, x):
        return self.second(self.first(x))
"""
X = "jnp.arange(12.0).reshape(2, 6) / 7"


@pytest.mark.parametrize(
    "body",
    [
        "width: ClassVar[int] = 4",
        "width: ClassVar = 2 * 2",
        "width: 'ClassVar[int]' = 4",
        "width: ClassVar[int]",  # declared only: the mixin's
        "width = 3\n    width = 4",
        "half: ClassVar[int] = 2\n    width = half * 2",
        "width, half = 4, 2",
        "if width > 3:\n        width = 4",
        "width: ClassVar[int] = Mixin.other",
        "@property\n    def width(self):\n        return self.other",
    ],
)
def test_the_size_is_that_of_the_attribute(body: str) -> None:
    assert net_alike(SOURCE.replace("BODY", body), X)["m.Net"] == "explicit"


def test_a_constant_hides_the_property_of_a_base() -> None:
    source = SOURCE.replace(
        "    width = 3", "    @property\n    def width(self):\n        return 3"
    )
    assert net_alike(source.replace("BODY", "width: ClassVar[int] = 4"), X)["m.Net"] == "explicit"


@pytest.mark.parametrize("value", [4, 5])
def test_classes_of_one_constructor_may_have_it_otherwise(value: int) -> None:
    source = SOURCE.replace("BODY", "width: ClassVar[int] = 4").replace("class Net(", "class Base(")
    source += f"\n\nclass Net(Base):\n    width: ClassVar[int] = {value}\n"
    assert set(net_alike(source, X)) == {"m.Base", "m.Net"}
