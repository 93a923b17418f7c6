"""Comprehensions of ``setup`` whose sizes change from item to item become loops that carry the size."""

from __future__ import annotations

import pytest

from tests.rewrite.running import in_auto, net_alike

SOURCE = """\
from typing import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    one: Sequence[int] = (3, 4)
    two: Sequence[int] = (5, 4)

    def setup(self):
        {setup}

    def __call__(self, x):
        {call}


"""
PAIRS = "for a, b in self.parts:\n            x = b(a(x))\n        return x"
TWICE = (
    "for row in self.parts:\n            for a in row:\n                x = a(x)\n        return x"
)
SIDES = (
    "y = x\n        for a in self.parts[0]:\n            x = a(x)\n"
    "        for a in self.parts[1]:\n            y = a(y)\n        return x + y"
)
EXPLICIT = {
    "a list": (
        "self.parts = [nn.Dense(w) for w in self.one]",
        "for a in self.parts:\n            x = a(x)\n        return x",
    ),
    "pairs": ("self.parts = [(nn.Dense(4), nn.Dense(w)) for w in self.one]", PAIRS),
    "a tuple of pairs": (
        "self.parts = tuple((nn.Dense(w), nn.LayerNorm()) for w in self.one)",
        PAIRS,
    ),
    "pairs with names": (
        "self.parts = [(nn.Dense(4, name=f'a{w}'), nn.Dense(w, name=f'b{w}')) for w in self.one]",
        PAIRS,
    ),
    "dicts": (
        "self.parts = [{'a': nn.Dense(w), 'b': nn.Dense(2)} for w in self.one]",
        "for part in self.parts:\n            x = part['b'](part['a'](x))\n        return x",
    ),
    "layers beside numbers": (
        "self.parts = [(nn.Dense(w), w) for w in self.one]",
        "for a, n in self.parts:\n            x = a(x) * n\n        return x",
    ),
    "an argument": (
        "self.parts = nn.Sequential([nn.Dense(w) for w in self.one])",
        "return self.parts(x)",
    ),
    "two lists, one behind the other": (
        "self.parts = [[nn.Dense(w) for w in self.one], [nn.Dense(w) for w in self.two]]",
        TWICE,
    ),
    "two lists in one argument": (
        "self.parts = nn.Sequential([nn.Dense(w) for w in self.one] + [nn.Dense(w) for w in self.two])",
        "return self.parts(x)",
    ),
    "two lists side by side": (
        "self.parts = [[nn.Dense(w) for w in self.one], [nn.Dense(w) for w in self.two]]",
        SIDES,
    ),
    "a list in each round": (
        "self.parts = [[nn.Dense(k) for k in (2, w)] for w in self.one]",
        TWICE,
    ),
    "a list in each round that starts anew": (
        "self.parts = [[nn.Dense(k) for k in (2, w)] for w in self.one]",
        (
            "y = 0\n        for row in self.parts:\n            z = x\n            for a in row:\n"
            "                z = a(z)\n            y = y + z.sum()\n        return y"
        ),
    ),
    "two lists in each round": (
        "self.parts = [([nn.Dense(k) for k in (2, w)], [nn.Dense(3) for k in (w, 4)]) for w in self.one]",
        (
            "for pair in self.parts:\n            for row in pair:\n                for a in row:\n"
            "                    x = a(x)\n        return x"
        ),
    ),
    "lists in a dict": (
        "self.parts = {0: [nn.Dense(w) for w in self.one], 1: [nn.Dense(w) for w in self.two]}",
        SIDES,
    ),
}
LAZY = {
    "some rounds": (
        "self.parts = [nn.Dense(w) for w in self.one if w > 2]",
        "for a in self.parts:\n            x = a(x)\n        return x",
    ),
}


def net(setup: str, call: str) -> str:
    return SOURCE.format(setup=setup, call=call)


@pytest.mark.parametrize(("setup", "call"), EXPLICIT.values(), ids=EXPLICIT)
def test_what_a_round_builds_is_given_the_size_of_the_round_before(setup: str, call: str) -> None:
    assert net_alike(net(setup, call), "jnp.ones((2, 5))") == {"m.Net": "explicit"}


@pytest.mark.parametrize(("setup", "call"), LAZY.values(), ids=LAZY)
def test_other_comprehensions_are_lazy(setup: str, call: str) -> None:
    assert net_alike(net(setup, call), "jnp.ones((2, 5))") == {"m.Net": "lazy"}


def test_each_list_has_a_name_of_its_own_and_stands_where_it_was() -> None:
    made = in_auto(net(*EXPLICIT["two lists, one behind the other"]))
    assert (
        """\
        x_features = in_features
        parts_list = []
        for w in self.one:
            parts_list.append(nnx.Linear(x_features, w, rngs=rngs))
            x_features = w
        parts_list_ = []
        for w in self.two:
            parts_list_.append(nnx.Linear(x_features, w, rngs=rngs))
            x_features = w
        nnm.set_submodules(self, "parts", [parts_list, parts_list_])
"""
        in made
    )


def test_comments_stay_above_the_loop() -> None:
    setup = "# all\n        self.parts = [\n            (nn.Dense(4), nn.Dense(w))  # two\n            for w in self.one\n        ]"
    made = in_auto(net(setup, PAIRS))
    assert "        # all\n        # two\n        x_features = in_features\n" in made
