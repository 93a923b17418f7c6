"""Submodules of compact methods of which only a call says whether there is one: its first call makes it."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import in_auto, printed_alike

NET = """
import jax
import jax.numpy as jnp


class Sub(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Net(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x, mode="train", *, scale=1):
{body}
"""
MAIN = """

def main():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    for options in ({}, {"mode": "test"}, {"scale": 2}):
        for width in (4, 6):
            net = Net(width)
            variables = net.init(jax.random.key(0), x, **options)
            for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
                print(jax.tree_util.keystr(path), leaf.shape, leaf.sum())
            print(net.apply(variables, x, **options).sum())
"""
LEFT = {
    "a word": "if mode == 'train':\n    x = nn.Dense(3)(x)\nreturn nn.LayerNorm()(x)",
    "a number": "x = nn.Dense(4)(x)\nif scale > 1:\n    x = nn.Dense(5)(x)\nreturn x",
    "a value": "if x.sum() > 1:\n    x = nn.Dense(3)(x)\nreturn x",
    "an expression": "y = nn.LayerNorm()(x)\nreturn nn.Dense(3)(y) if mode == 'train' else y",
    "a class of the project": "if scale > 1:\n    x = Sub(4)(x)\nreturn nn.Dense(2)(x)",
    "names": "x = nn.Dense(4)(x)\nif scale > 1:\n    x = nn.Dense(5, name='wide')(x)\nreturn nn.Dense(3)(x)",
    "both sides": (
        "if scale > 1:\n    x = nn.Dense(5, name='a')(x)\nelse:\n    x = nn.Dense(3, name='b')(x)\nreturn x"
    ),
    "an early return": "if mode == 'train':\n    return x\nreturn nn.Dense(3)(x)",
    "two ends with names": (
        "if mode == 'train':\n    return nn.Dense(2, name='a')(x)\nreturn nn.Dense(3, name='b')(x)"
    ),
    "a loop": (
        "for i in range(2):\n    x = nn.LayerNorm()(x)\n    if mode == 'train':\n"
        "        x = nn.Dense(4, name=f'inner_{i}')(x)\nreturn x"
    ),
}
LAZY = {
    "a number behind it": "if mode == 'train':\n    x = nn.Dense(3)(x)\nreturn nn.Dense(2)(x)",
    "one name for both": (
        "if mode == 'train':\n    x = nn.Dense(3)(x)\nelse:\n    x = nn.Dense(5)(x)\nreturn x"
    ),
    "numbers in a loop": "for _ in range(2):\n    if mode == 'train':\n        x = nn.Dense(4)(x)\nreturn x",
    "one name at two ends": "if mode == 'train':\n    return nn.Dense(2)(x)\nreturn nn.Dense(3)(x)",
    "numbers at two ends": (
        "if mode == 'train':\n    return nn.Dense(2)(nn.Dense(5)(x))\nreturn nn.Dense(3)(x)"
    ),
    "what it is built with": "if mode == 'train':\n    x = nn.Dense(scale)(x)\nreturn x",
    "a parameter": (
        "if mode == 'train':\n    x = x * self.param('s', nn.initializers.ones, ())\nreturn nn.Dense(3)(x)"
    ),
}


def net(body: str) -> str:
    return LINEN + NET.format(body=textwrap.indent(body, "        "))


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_one_under_a_condition_on_the_call_is_left_to_its_first(body: str) -> None:
    assert printed_alike(net(body) + MAIN) == {"m.Sub": "explicit", "m.Net": "explicit"}
    text = in_auto(net(body)).partition("class Net")[2].partition("def __call__")[0]
    assert " = nn.Dense(" in text or " = lazy(Sub)(" in text or ", nn.Dense(" in text


@pytest.mark.parametrize("body", LAZY.values(), ids=LAZY)
def test_what_no_constructor_can_name_keeps_the_class_lazy(body: str) -> None:
    assert printed_alike(net(body) + MAIN)["m.Net"] == "lazy"
