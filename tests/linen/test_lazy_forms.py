"""The lazy form of classes, partials and factories."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import nnx_migrate.linen as nn
from nnx_migrate import nn as nnm
from nnx_migrate.nn.building.factory import Factory

FACTORIES = [one for one in vars(nnm.factory).values() if isinstance(one, Factory)]


class Block(nnx.Module):
    def __init__(self, width: int, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.proj = nnx.Linear(in_features, width, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.proj(x)


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda one: one.linen_name)
def test_that_of_a_factory_is_the_layer(factory: Any) -> None:
    assert nn.lazy(factory) is getattr(nn, factory.linen_name)


@pytest.mark.parametrize("build", [Block, nnm.factory.Dense])
def test_that_of_a_partial_keeps_what_it_gives(build: Any) -> None:
    module = nn.lazy(functools.partial(build, 4))()
    made = module.init(jax.random.key(0), jnp.ones((2, 3)))
    assert module.apply(made, jnp.ones((2, 3))).shape == (2, 4)


def test_that_of_a_lazy_class_is_itself() -> None:
    assert nn.lazy(nn.lazy(Block)) is nn.lazy(Block)


@pytest.mark.parametrize("value", [None, 3, nnx.relu, functools.partial(nnx.relu)])
def test_nothing_else_has_one(value: Any) -> None:
    with pytest.raises(TypeError, match="to make lazy"):
        nn.lazy(value)
