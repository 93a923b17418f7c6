"""Calls whose random draws decide, in Python, which parts they reach: ``init`` makes these, as Linen's does."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Wrapped(nn.Module):
    part: nn.Module

    @nn.compact
    def __call__(self, x):
        if jax.random.bernoulli(self.make_rng("route"), 0.5):
            x = x + self.part(x)
        return nn.Dense(2)(x)


class Net(nn.Module):
    BODY


def main():
    x = jnp.ones((2, 4)) / 3
    for seed in range(4):
        keys = {"params": jax.random.key(0), "route": jax.random.key(seed)}
        out, variables = MODEL.init_with_output(keys, x)
        print(jax.tree.map(jnp.sum, variables), out)
        print(MODEL.apply(variables, x, rngs={"route": jax.random.key(seed)}))
"""
BODIES = {
    "layer drop": """\
def setup(self):
        self.layers = [nn.Dense(4) for _ in range(3)]

    def __call__(self, x):
        for layer in self.layers:
            if jax.random.uniform(self.make_rng("route")) < 0.5:
                continue
            x = nn.relu(layer(x))
        return x
""",
    "one of two": """\
def setup(self):
        self.one = nn.Dense(3)
        self.other = nn.Dense(3)

    def __call__(self, x):
        return [self.one, self.other][int(jax.random.randint(self.make_rng("route"), (), 0, 2))](x)
""",
    "stochastic depth": """\
@nn.compact
    def __call__(self, x):
        y = nn.relu(nn.Dense(8)(x))
        if not jax.random.bernoulli(self.make_rng("route"), 0.5):
            return x
        return x + nn.Dense(x.shape[-1])(y)
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_the_draw_leaves_out_is_not_made(body: str) -> None:
    printed_alike(SOURCE.replace("BODY", body).replace("MODEL", "Net()"))


def test_sizes_are_measured_on_the_way_that_the_draw_takes() -> None:
    body = "@nn.compact\n    def __call__(self, x):\n        return Wrapped(nn.Dense(4))(x)"
    model = "Wrapped(nn.Sequential([nn.Dense(4), nn.relu]))"
    printed_alike(SOURCE.replace("BODY", body).replace("MODEL", model))
