"""Decorators of methods: those of libraries stay, the project's own make their class lazy."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

HEAD = """\
import functools
import flax.linen as nn
import jax
import jax.numpy as jnp


{top}


def make(transform=nn.jit):
    class Net(nn.Module):
        width: int = 3

        {decorator}
        def __call__(self, x):
            return nn.Dense(self.width)(x)

    return Net()


def main():
    net = make()
    variables = net.init(jax.random.key(0), jnp.ones((2, 4)))
    print(variables, net.apply(variables, jnp.ones((2, 4)), mutable=["intermediates"]))
"""
SOWING = """\
def sowing(f):
    @functools.wraps(f)
    def g(self, *args):
        out = f(self, *args)
        self.sow("intermediates", "out", out)
        return out
    return g
"""
FLAT = "def flat(f):\n    return lambda self, x: f(self, x.reshape(-1, 2))\n"


def program(decorator: str, top: str = "") -> str:
    """A class inside a function, whose call is decorated."""
    return HEAD.format(top=top, decorator=decorator.replace("\n", "\n        "))


LAZY = {
    "one that the function is given": program("@transform\n@nn.compact"),
    "a partial of it": program("@functools.partial(transform)\n@nn.compact"),
    "one that sows": program("@sowing\n@nn.compact", SOWING),
    "one that changes the input": program("@nn.compact\n@flat", FLAT),
}
EXPLICIT = {
    "a library's": program("@nn.compact\n@jax.named_scope('call')"),
    "Linen's": program("@nn.remat\n@nn.compact"),
    "a name for a library's": program(
        "@typed\n@nn.compact",
        "def typed(function):\n    return jax.named_call(function)\n",
    ),
}


@pytest.mark.parametrize("source", LAZY.values(), ids=LAZY)
def test_one_that_nobody_knows_makes_its_class_lazy(source: str) -> None:
    assert [*printed_alike(source).values()] == ["lazy"]


@pytest.mark.parametrize("source", EXPLICIT.values(), ids=EXPLICIT)
def test_others_stay(source: str) -> None:
    assert [*printed_alike(source).values()] == ["explicit"]
