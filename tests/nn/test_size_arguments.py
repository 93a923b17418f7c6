"""Offering sizes to a class that is only known at run time."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from flax import nnx

from nnx_migrate import nn as nnm


class Wide(nnx.Module):
    def __init__(self, width: int = 1, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.sizes = (width, in_features)


class Whole(nnx.Module):
    def __init__(self, *, x_shape: tuple[int, ...], rngs: nnx.Rngs) -> None:
        self.sizes = x_shape


class Anything(nnx.Module):
    def __init__(self, **given: Any) -> None:
        self.sizes = tuple(sorted(given))


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (Wide, (1, 5)),
        (partial(partial(Wide), width=3), (3, 5)),
        (Whole, (2, 5)),
        (Anything, ("in_features", "rngs", "x_shape")),
        (lambda rngs: Wide(7, in_features=0, rngs=rngs), (7, 0)),
    ],
)
def test_a_class_gets_the_sizes_it_takes(build: Any, expected: tuple[Any, ...]) -> None:
    made = nnm.sized(build, in_features=5, x_shape=(2, 5))(rngs=nnx.Rngs(0))
    assert made.sizes == expected


def test_a_factory_takes_the_width() -> None:
    made = nnm.sized(partial(nnm.factory.Dense, 3), in_features=5, x_shape=(2, 5))(rngs=nnx.Rngs(0))
    assert made.kernel.shape == (5, 3)


def test_a_size_that_nobody_offers_is_missed() -> None:
    with pytest.raises(TypeError, match="x_shape"):
        nnm.sized(Whole, in_features=5)(rngs=nnx.Rngs(0))
