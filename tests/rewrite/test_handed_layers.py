"""Layers that a class which stays lazy hands to an explicit one."""

from __future__ import annotations

from tests.rewrite.running import printed_alike

LAZY_PARENT = """\
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


class Block(nn.Module):
    width: int
    norm: Any

    @nn.compact
    def __call__(self, x):
        return nn.relu(self.norm()(nn.Dense(self.width)(x)))


class Net(nn.Module):
    # Lazy, and hands layers to an explicit class.
    def __getattr__(self, name):
        raise AttributeError(name)

    @nn.compact
    def __call__(self, x, train: bool = False):
        norm = partial(nn.BatchNorm, use_running_average=not train)
        for width in (4, 3):
            x = Block(width, norm)(x)
        return Block(2, norm=nn.LayerNorm)(x)


class Same(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False):
        norm = partial(nn.BatchNorm, use_running_average=not train)
        for width in (4, 3):
            x = Block(width, norm)(x)
        return Block(2, norm=nn.LayerNorm)(x)


def main():
    x = jax.random.normal(jax.random.key(1), (3, 4))
    for model in (Net(), Same()):
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables))
        print(model.apply(variables, x).tobytes().hex())
        print(jax.tree.map(lambda one: one.tobytes().hex(), model.apply(variables, x, True, mutable="batch_stats")))
"""


def test_a_lazy_class_hands_layers_to_an_explicit_one() -> None:
    assert printed_alike(LAZY_PARENT) == {
        "m.Block": "explicit",
        "m.Net": "lazy",
        "m.Same": "explicit",
    }


def test_a_lazy_class_may_call_what_it_hands_on_to_an_explicit_one() -> None:
    source = LAZY_PARENT.replace(
        "        for width in (4, 3):", "        x = norm()(x)\n        for width in (4, 3):", 1
    )
    assert printed_alike(source)["m.Block"] == "explicit"
