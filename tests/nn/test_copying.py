"""A module built once more, with variables of its own."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm


class Layer(nnx.Module):
    def __init__(self, width: int = 2, *, in_features: int, rngs: nnx.Rngs) -> None:
        nnm.remember(self, __class__, width=width, in_features=in_features)  # type: ignore[name-defined]
        self.mix = nnx.Linear(in_features, width, rngs=rngs)


class Wide(Layer):
    def __init__(self, factor: int, *, rngs: nnx.Rngs) -> None:
        nnm.remember(self, __class__, factor=factor)  # type: ignore[name-defined]
        super().__init__(factor * 2, in_features=3, rngs=rngs)


class Forgetful(Layer):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        super().__init__(2, in_features=3, rngs=rngs)


class Holder(nnx.Module):
    def __init__(self, held: Any, *, rngs: nnx.Rngs) -> None:
        nnm.remember(self, __class__, held=held)  # type: ignore[name-defined]
        self.held = nnx.data(held)


def test_a_copy_has_the_shapes_of_the_module_and_values_of_its_own() -> None:
    module = nnx.merge(*nnx.split(Layer(4, in_features=3, rngs=nnx.Rngs(0))))
    other = nnm.copy_of(module, rngs=nnx.Rngs(1))
    assert other.mix.kernel.shape == (3, 4)
    assert not np.array_equal(other.mix.kernel[...], module.mix.kernel[...])


def test_a_subclass_is_copied_as_what_it_is() -> None:
    other = nnm.copy_of(Wide(3, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(1))
    assert type(other) is Wide
    assert other.mix.kernel.shape == (3, 6)


@pytest.mark.parametrize(
    "module",
    [
        lambda: nnx.Linear(2, 3, rngs=nnx.Rngs(0)),
        lambda: Forgetful(rngs=nnx.Rngs(0)),
        lambda: Holder(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(0)),
        lambda: Holder([jnp.ones(2)], rngs=nnx.Rngs(0)),
    ],
)
def test_a_module_that_cannot_be_built_again_is_an_error(module: Any) -> None:
    with pytest.raises(ValueError, match="build the second module by hand"):
        nnm.copy_of(module(), rngs=nnx.Rngs(1))


def test_two_modules_built_alike_have_one_graph() -> None:
    one, other = (nnx.graphdef(Layer(in_features=3, rngs=nnx.Rngs(i))) for i in (0, 1))
    assert one == other
    assert hash(one) == hash(other)
