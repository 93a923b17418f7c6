"""Calls that are given several arrays of unlike widths: no size of one is taken for that of another."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike, printed_alike

HEAD = """\
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp


class Frame(NamedTuple):
    image: jax.Array
    state: jax.Array

    @property
    def both(self):
        return jnp.concatenate([self.image, self.state], axis=-1)


class Net(nn.Module):
    @nn.compact
    def __call__(self, xs):
        BODY


class Features(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x), nn.Dense(4)(x), nn.Dense(5)(x)


class Outer(nn.Module):
    def setup(self):
        self.features = Features()
        self.net = Net()

    def __call__(self, x):
        return self.net(self.features(x))
"""
THREE = "(jnp.ones((2, 3)), jnp.ones((2, 4)) / 2, jnp.ones((2, 5)) / 3)"
TRIPLES = {
    "a part of a list": "low, high = xs[-2:]\nreturn nn.Dense(4)(low) + nn.Dense(4)(high)",
    "what a loop leaves of a list": (
        "y, rest = jnp.ones((2, 2)), xs\nfor width in (4, 6, 4):\n    one, rest = rest[-1], rest[:-1]\n"
        "    y = nn.Dense(width)(jnp.concatenate([y, one], axis=-1))\nreturn y"
    ),
    "items counted from the end": "return nn.Dense(4)(xs[-1]) + nn.Dense(4)(xs[-2]) + nn.Dense(4)(xs[1])",
    "a map over all": "a, _, b = jax.tree.map(jnp.tanh, xs)\nreturn nn.Dense(4)(a) + nn.Dense(4)(b)",
    "the width of all together": (
        "x = jnp.concatenate(xs, axis=-1)\nreturn nn.Dense(x.shape[-1])(nn.Dense(4)(x))"
    ),
    "a parameter for all together": (
        "x = jnp.concatenate(jax.tree.leaves(xs), axis=-1)\n"
        'return nn.Dense(4)(x) + self.param("scale", nn.initializers.ones, (x.shape[-1],)).sum()'
    ),
    "one's width for another": "return nn.Dense(xs[0].shape[-1])(jnp.concatenate(xs[1:], axis=-1))",
}


def source(body: str) -> str:
    return HEAD.replace("BODY", body.replace("\n", "\n        "))


@pytest.mark.parametrize("body", TRIPLES.values(), ids=TRIPLES)
def test_widths_of_a_tuple_are_told_apart(body: str) -> None:
    assert net_alike(source(body), THREE)["m.Net"] == "explicit"


@pytest.mark.parametrize("body", TRIPLES.values(), ids=TRIPLES)
def test_below_an_explicit_class_too(body: str) -> None:
    main = """

def main():
    x = jnp.ones((2, 6))
    variables = Outer().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.sum, variables), Outer().apply(variables, x))
"""
    forms = printed_alike(source(body) + main)
    assert set(forms.values()) == {"explicit"}


@pytest.mark.parametrize(
    "body",
    [
        "x = xs.both\nreturn nn.Dense(x.shape[-1])(nn.Dense(4)(x))",
        'x = getattr(xs, "im" + "age")\nreturn nn.Dense(x.shape[-1])(nn.Dense(4)(x))',
        "x = jnp.concatenate(jax.tree.leaves(xs), axis=-1)\nreturn nn.Dense(x.shape[-1])(nn.Dense(4)(x))",
        "return nn.Dense(4)(xs.both) + nn.Dense(xs.both.shape[-1] - 1)(xs.state)",
    ],
)
def test_a_record_gives_what_it_computes(body: str) -> None:
    inputs = "Frame(image=jnp.ones((2, 3)), state=jnp.ones((2, 2)) / 2)"
    assert net_alike(source(body), inputs)["m.Net"] == "explicit"


def test_a_pair_may_come_as_one_input_or_as_two() -> None:
    code = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Join(nn.Module):
    @nn.compact
    def __call__(self, a, b=None):
        if b is None:
            a, b = a
        return nn.Dense(4)(a) + nn.Dense(4)(b)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        two = nn.Dense(3)(x), nn.Dense(5)(x)
        return Join()(two) + Join()(*two)
"""
    assert set(net_alike(code, "jnp.ones((2, 3))").values()) == {"explicit"}
