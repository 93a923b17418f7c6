"""Loops over fields may have no round: what is built behind them has the size from before then."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import printed_alike

HEAD = """\
from typing import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    n: int
    w: int = 5

"""
MAIN = """

def main():
    x = jnp.arange(12.0).reshape(2, 6)
    for n in (0, 1, 3):
        variables = Net(n).init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables), Net(n).apply(variables, x))
"""


def program(call: str, setup: str = "") -> str:
    methods = [f"def setup(self):\n{textwrap.indent(setup, '    ')}\n"] if setup else []
    methods.append(
        f"{'' if setup else '@nn.compact'}\ndef __call__(self, x):\n{textwrap.indent(call, '    ')}"
    )
    return f"{HEAD}{textwrap.indent(''.join(methods), '    ')}{MAIN}"


COMPACT = {
    "layers of one width": (
        "for _ in range(self.n):\n    x = nn.tanh(nn.Dense(self.w)(x))\nreturn nn.Dense(3)(x)\n"
    ),
    "fewer rounds than the field says": (
        "for _ in range(self.n - 1):\n    x = nn.Dense(self.w)(x)\nreturn nn.Dense(3)(x)\n"
    ),
    "another local than the input": (
        "y = x\nfor _ in range(self.n):\n    y = nn.Dense(self.w)(x)\nreturn nn.Dense(3)(y)\n"
    ),
    "a norm behind the loop": (
        "for _ in range(self.n):\n    x = nn.Dense(self.w)(x)\nreturn nn.LayerNorm()(x)\n"
    ),
    "a size that is not known before it": (
        "parts = [x]\nfor k in range(1, 3):\n    parts.append(jnp.sin(k * x))\n"
        "y = jnp.concatenate(parts, axis=-1)\n"
        "for _ in range(self.n):\n    y = nn.Dense(self.w)(y)\nreturn nn.Dense(3)(y)\n"
    ),
    "layers of a list": (
        "layers = [nn.Dense(4)]\nfor _ in range(self.n):\n    layers.append(nn.Dense(self.w))\n"
        "return nn.Sequential([*layers, nn.relu, nn.Dense(2)])(x)\n"
    ),
    "both beside each other": (
        "first = x\nfor _ in range(self.n):\n    x = nn.Dense(self.w)(x)\n"
        "return nn.Dense(3)(jnp.concatenate([first, x], -1))\n"
    ),
    "as many axes as before": (
        "x = x[:, :, None, None]\nfor _ in range(self.n):\n    x = nn.Conv(self.w, (3, 3))(x)\n"
        "return nn.Dense(3)(x.reshape((x.shape[0], -1)))\n"
    ),
}
SETUP = {
    "layers of one width": (
        "for one in self.layers:\n    x = one(x)\nreturn self.head(x)\n",
        "self.layers = [nn.Dense(self.w) for _ in range(self.n)]\nself.head = nn.Dense(3)\n",
    ),
    "the head above the layers": (
        "for one in self.layers:\n    x = one(x)\nreturn self.head(x)\n",
        "self.head = nn.Dense(3)\nself.layers = [nn.Dense(self.w) for _ in range(self.n)]\n",
    ),
    "the layers in another order than the call": (
        "for one in self.first:\n    x = one(x)\nfor one in self.second:\n    x = one(x)\nreturn self.head(x)\n",
        "self.head = nn.Dense(3)\nself.second = [nn.Dense(self.w + 1) for _ in range(self.n)]\n"
        + "self.first = [nn.Dense(self.w) for _ in range(self.n)]\n",
    ),
    "all layers but the last": (
        "for one in self.layers[:-1]:\n    x = one(x)\nreturn self.layers[-1](x)\n",
        "self.layers = [nn.Dense(4) for _ in range(self.n)] + [nn.Dense(7)]\n",
    ),
}


@pytest.mark.parametrize("call", COMPACT.values(), ids=COMPACT)
def test_a_compact_method_builds_the_same(call: str) -> None:
    assert printed_alike(program(call)) == {"m.Net": "explicit"}


@pytest.mark.parametrize(("call", "setup"), SETUP.values(), ids=SETUP)
def test_setup_builds_the_same(call: str, setup: str) -> None:
    assert printed_alike(program(call, setup)) == {"m.Net": "explicit"}
