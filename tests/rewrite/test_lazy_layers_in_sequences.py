"""Lazy submodules that ``nn.Sequential`` holds, and sizes that only calls inside of the class show."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import net_alike

SOURCE = (
    LINEN
    + """\
import jax
import jax.numpy as jnp


class Odd(nn.Dense):
    def __call__(self, x):
        return super().__call__(x) + 1.0


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.relu(nn.Dense(self.width)(x))


class Scale(nn.Module):
    start: float

    @nn.compact
    def __call__(self, x):
        return Odd(3)(x) * self.start


class Taking(nn.Module):
    inner: nn.Module

    def __call__(self, x):
        return x + self.inner(x)


class Net(nn.Module):
    count: int = 2

    {body}
"""
)
EXPLICIT = {
    "setup": """\
def setup(self):
        self.net = nn.Sequential([Block(4), nn.relu, Odd(3), nn.Dense(2)])
        self.out = nn.Dense(2)

    def __call__(self, x):
        return self.out(self.net(x))
""",
    "a compact method": """\
@nn.compact
    def __call__(self, x):
        x = nn.Sequential([Odd(3), nn.tanh, Block(5)])(x)
        x = nn.Sequential([Odd(3) for _ in range(self.count)])(x)
        return nn.Dense(2)(x)
""",
    "a list that is added to": """\
def setup(self):
        layers = [Odd(3)]
        for i in range(self.count):
            layers += [Block(4 + i), Odd(5)]
        self.net = nn.Sequential(layers)

    def __call__(self, x):
        return self.net(x)
""",
    "each round another width": """\
@nn.compact
    def __call__(self, x):
        for i in range(self.count):
            x = nn.Sequential([nn.Dense(3), nn.relu])(jnp.concatenate([x] * (i + 1), -1))
        return x
""",
    "a parameter among the arguments": """\
@nn.compact
    def __call__(self, x):
        x = x * self.param("start", nn.initializers.ones, (1, x.shape[-1]))
        width = x.shape[-1]
        return Scale(width / 2)(x)
""",
    "a size of what another method takes": """\
def setup(self):
        self.first, self.last = Odd(3), nn.Dense(2)

    def encode(self, x):
        return jnp.concatenate([self.first(x)] * self.count, -1)

    def decode(self, z):
        return self.last(z)

    def __call__(self, x):
        return self.decode(self.encode(x))
""",
}
LAZY = {
    "another module takes it": """\
def setup(self):
        self.net = Taking(Odd(3))

    def __call__(self, x):
        return self.net(x)
""",
    "its layers are read": """\
def setup(self):
        self.net = nn.Sequential([Odd(3), nn.relu])

    def __call__(self, x):
        return self.net.layers[0](x)
""",
}


def form(body: str) -> str:
    return net_alike(SOURCE.replace("{body}", body), "jnp.ones((2, 3))")["m.Net"]


@pytest.mark.parametrize("body", EXPLICIT.values(), ids=EXPLICIT)
def test_the_class_is_explicit(body: str) -> None:
    assert form(body) == "explicit"


@pytest.mark.parametrize("body", LAZY.values(), ids=LAZY)
def test_what_does_more_with_it_keeps_the_class_lazy(body: str) -> None:
    assert form(body) == "lazy"
