"""Locals of plain Python that change on the way decide about the same layers in ``__init__``."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import lazy, net_alike

HEAD = """\
import copy
import functools
from typing import Any, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp

WIDTHS = [3, 4]


class Pair(nn.Module):
    widths: Sequence[int]

    @nn.compact
    def __call__(self, x):
        for width in self.widths:
            x = nn.Dense(width)(x)
        return x


class Count:
    def __init__(self, n):
        self.n = n

    def step(self):
        self.n += 1
        return self.n


def use(count):
    return count.step()


class Net(nn.Module):
    n: int = 2
    widths: Sequence[int] = (4, 3)

"""
COMPACT = "    @nn.compact\n    def __call__(self, x):\n"
REMEMBERING = [
    "def width(seen=[2]):\n    seen.append(len(seen) + 4)\n    return seen[-1]\nn = width()\nx = nn.Dense(width())(x)\nreturn x * n",
    "width = lambda seen=[5, 4]: seen.pop()\nn = width()\nx = nn.Dense(width())(x)\nreturn x * n",
    "def width(n, seen=[]):\n    seen.append(n)\n    return len(seen) + 2\nlist(map(width, (1, 2)))\nreturn nn.Dense(width(0))(x)",
    "ws = WIDTHS[:1]\nlist(map(ws.append, (4, 2)))\nreturn Pair(tuple(ws))(x)",
    "ws = [4, 3]\nfor one in [ws]:\n    one[0] += 1\nreturn nn.Dense(ws[0])(x)",
    "count = Count(self.n)\nn = use(count)\nx = nn.Dense(use(count))(x)\nreturn x * n",
]


def compact(body: str) -> str:
    return HEAD + COMPACT + textwrap.indent(body, " " * 8)


@pytest.mark.parametrize("body", REMEMBERING)
def test_calls_that_change_what_a_layer_is_built_with_are_lazy(body: str) -> None:
    assert "which decides what is built" in lazy(compact(body), "Net")
    net_alike(compact(body), "jnp.ones((2, 3))")


SETUP = """\
    def setup(self):
{body}

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.last(x)
"""
CHANGED = [
    "ws = list(self.widths)\nws[0], ws[-1] = ws[-1], ws[0]",
    "ws = list(self.widths)\nws[0] = 5",
    "ws = list(self.widths)\nws.pop()",
    "ws = sorted(self.widths)\nws.append(7)",
    "ws = list(self.widths)\nvs = ws\nvs.append(6)",
    "ws = list(self.widths)\n_ = [ws.append(w) for w in (6, 5)]",
    "ws = [4, 3]\n_ = [ws.append(w) for w in (6, 5)]",
    "ws = [4, 3]\nws = ws[1:] or ws",
    "ws = [4, 3]\nfor one in [ws]:\n    one[0] += 1\n    one.append(5)",
    "ws, vs = [4, 3], [1, 2]\nfor i, one in enumerate((ws, vs)):\n    one.append(i + 2)",
    "both = dict(w=[4, 3])\nws = both['w']\nws[-1] = 6",
    "ws = list(self.widths)[2:] or [6, 2]",
    "ws = [] or self.n and [5, 2]",
    "ws = [4, 3]\nlist(map(lambda w: ws.append(w), (6, 5)))",
]


@pytest.mark.parametrize("body", CHANGED)
def test_sizes_behind_a_list_are_those_after_its_change(body: str) -> None:
    body += "\nself.layers = [Pair(tuple(ws))]"
    body += "\nself.last = nn.Sequential([nn.Dense(ws[-1]), nn.relu, nn.Dense(2)])"
    source = HEAD + SETUP.format(body=textwrap.indent(body, " " * 8))
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "explicit"


@pytest.mark.parametrize(
    "last", ["nn.Sequential([nn.Dense(w) for w in copy.copy(ws)])", "Pair(ws)"]
)
def test_sizes_looked_up_by_name_are_those_of_the_layer(last: str) -> None:
    body = f"ws = copy.deepcopy(WIDTHS)\nself.layers = [nn.Dense(w) for w in [5, ws[0]]]\nself.last = {last}"
    source = HEAD + SETUP.format(body=textwrap.indent(body, " " * 8))
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "explicit"


MEASURED = [
    # What a call has to measure runs nowhere before: neither does what it gives have a shape.
    "for _ in range(2):\n    x = nn.Dense(self.n)(x)\nx = Pair(copy.deepcopy(WIDTHS))(x)\nreturn nn.Dense(x.shape[1])(x)",
    "for i, w in enumerate((4, 2)):\n    x = nn.Dense(w, name=f'd_{i}')(x)\nreturn nn.Dense(x.shape[1])(Pair(copy.copy(WIDTHS))(x))",
    "layers = []\nfor w in copy.copy(WIDTHS):\n    layers.append(nn.Dense(w))\nfor one in layers:\n    x = one(x)\nreturn nn.Dense(x.shape[1])(x)",
]


@pytest.mark.parametrize("body", MEASURED)
def test_shapes_behind_what_only_a_call_sizes(body: str) -> None:
    net_alike(compact(body), "jnp.ones((2, 3))")
