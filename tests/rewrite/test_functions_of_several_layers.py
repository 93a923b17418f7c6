"""Functions that put layers into the one that they return: ``def mlp(*widths): return nn.Sequential(layers)``."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import net_alike

SOURCE = (
    LINEN
    + """\
import jax
import jax.numpy as jnp


class Residual(nn.Module):
    inner: nn.Module

    def __call__(self, x):
        return x + self.inner(x)


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.relu(nn.Dense(self.width)(x))


def mlp(*widths, act=nn.relu, norm=False):
    layers = []
    for width in widths:
        layers.append(nn.Dense(width))
        if norm:
            layers.append(nn.LayerNorm())
        layers.append(act)
    return nn.Sequential(layers)


def residual(width):
    return Residual(nn.Dense(width))


def blocks(count, width):
    return nn.Sequential([Block(width) for _ in range(count)])


def either(kind, width):
    if kind == "deep":
        return nn.Sequential([nn.Dense(width), nn.relu])
    return nn.Dense(width)


def own(width):
    return nn.Sequential([nn.Dense(width, name="own"), nn.relu])


def several(width):
    return [nn.Sequential([nn.Dense(width)]), nn.Dense(width)]


class Net(nn.Module):
    width: int = 4

    {body}
"""
)
SETUP = """\
def setup(self):
        self.net = {value}
        self.out = nn.Dense(2)

    def __call__(self, x):
        return self.out(self.net(x))

    def features(self, x):
        return self.net(x)
"""
EXPLICIT = {
    "a loop fills a list": "mlp(8, self.width, norm=True)",
    "a layer in a field": "residual(3)",
    "modules of the project": "blocks(2, self.width)",
    "one of several": "either('deep', self.width)",
    "a sequence holds it": "nn.Sequential([residual(3), nn.relu])",
}
LAZY = {
    "named": "own(self.width)",
    "several": "several(self.width)[0]",
    "handed on": "Residual(mlp(3))",
}
COMPACT = """\
@nn.compact
    def __call__(self, x):
        return nn.Dense(2)(mlp(8, self.width)(x))
"""


def form(body: str) -> str:
    return net_alike(SOURCE.replace("{body}", body), "jnp.ones((2, 3))")["m.Net"]


@pytest.mark.parametrize("value", EXPLICIT.values(), ids=EXPLICIT)
def test_setup_holds_what_the_function_builds(value: str) -> None:
    assert form(SETUP.format(value=value)) == "explicit"


@pytest.mark.parametrize("value", LAZY.values(), ids=LAZY)
def test_what_setup_would_have_otherwise_keeps_the_class_lazy(value: str) -> None:
    assert form(SETUP.format(value=value)) == "lazy"


def test_a_compact_method_has_the_layers_itself() -> None:
    assert form(COMPACT) == "lazy"
