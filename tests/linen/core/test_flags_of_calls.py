"""Several calls of one explicit module in lazy code, of which some have no part of it."""

from __future__ import annotations

from typing import Any

import flax.linen
import jax
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import linen as nn
from nnx_migrate.linen import lazy
from tests.linen.core.models import KEY, X


class Part(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x, train=False):
        return flax.linen.Dense(3)(x) if train else x


class ExplicitPart(nnx.Module):
    def __init__(self, *, in_features: int | None = None, init_train: bool = False, rngs: Any):
        if init_train:
            self.Dense_0 = nnx.Linear(in_features, 3, rngs=rngs)

    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        return self.Dense_0(x) if train else x


def model(module: Any, part: Any, flags: tuple[bool, ...]) -> Any:
    """A module that calls its part once for each flag."""

    class Model(module):  # type: ignore[misc]
        def setup(self):
            self.part = part()
            self.parts = [self.part]

        def __call__(self, x):
            for flag in flags:
                x = x + self.parts[0](x, flag)
            return x

    return Model()


@pytest.mark.parametrize(
    "flags", [(True,), (False, True), (False, False, True), (True, False, True)]
)
def test_a_part_that_a_later_call_makes_starts_from_linens_keys(flags: tuple[bool, ...]) -> None:
    wanted = model(flax.linen.Module, Part, flags).init(KEY, X)
    given = model(nn.Module, lazy(ExplicitPart), flags).init(KEY, X)
    jax.tree.map(np.testing.assert_array_equal, wanted, given)
    assert jax.tree.leaves(given)
