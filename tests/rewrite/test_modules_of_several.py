"""A module that code builds and several hold: one set of parameters, at the place that Linen gives it."""

from __future__ import annotations

import itertools

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Backbone(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Encoder(nn.Module):
    body: nn.Module

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(self.body(x))


class Pair(nn.Module):
    a: nn.Module
    b: nn.Module

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(CALLS)


class Table(nn.Module):
    parts: dict[str, nn.Module]

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(self.parts["u"](x) + self.parts["v"](x))


def main():
    backbone = Backbone()
    encoder = Encoder(backbone)
    net = BUILT
    x = jnp.linspace(0, 1, 6).reshape(2, 3)
    variables = net.init(jax.random.key(0), x)
    for path, leaf in sorted(jax.tree_util.tree_leaves_with_path(variables), key=str):
        print(jax.tree_util.keystr(path), leaf.shape, leaf.sum())
    print(net.apply(variables, x))
    print(jax.tree.map(jnp.sum, jax.grad(lambda v: net.apply(v, x).sum())(variables)))
"""
HELD = [
    "Pair(Encoder(backbone), Encoder(backbone))",
    "Pair(Encoder(backbone), backbone)",
    "Pair(backbone, Encoder(backbone))",
    'Table({"u": Encoder(backbone), "v": backbone})',
    "Pair(encoder, Encoder(encoder))",
    "Pair(Encoder(encoder), Encoder(backbone))",
    "Pair(backbone, backbone)",
    "Pair(Encoder(Backbone()), Encoder(Backbone()))",  # equal, and not the same
    'Table({"u": Encoder(backbone), "v": Encoder(backbone)})',
]


CALLS = "self.a(x) + self.b(x)", "self.b(x) - self.a(x)"  # whichever is called first


@pytest.mark.parametrize(("built", "calls"), [*zip(HELD, itertools.cycle(CALLS), strict=False)])
def test_it_has_its_parameters_where_linen_has_them(built: str, calls: str) -> None:
    source = SOURCE.replace("CALLS", calls).replace("BUILT", built)
    assert {*printed_alike(source).values()} == {"explicit"}
