"""What decides about layers changes in ways that its statement does not show; what only reads it stays explicit."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.projects import rewrite, texts
from tests.rewrite.running import net_alike

SOURCE = """\
import bisect
import functools
import operator
import queue
import random
from types import SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


class Tick:
    def __init__(self):
        self.n = 3

    def __call__(self):
        self.n += 2
        return self.n


class Options:
    def __init__(self, widths):
        self.widths = widths

    def push(self, width):
        self.widths.append(width)


def switch_off(options):
    options.deep = False


def grow_all(widths):
    grow(widths, 5)


def grow(widths, width):
    widths.append(width)


class Net(nn.Module):
    widths: tuple = (3, 4)

    def grown(self, widths):
        widths.append(5)

    @nn.compact
    def __call__(self, x):
BODY
"""

LAZY = {
    "a library's function": "ws = [3, 7]\nx = nn.Dense(ws[0])(x)\nbisect.insort(ws, 2)\nreturn nn.Dense(ws[0])(x)",
    "a method of the type": "ws = [3]\nx = nn.Dense(ws[-1])(x)\nlist.append(ws, 5)\nreturn nn.Dense(ws[-1])(x)",
    "a bound method": "ws = [3]\npush = ws.append\nx = nn.Dense(ws[-1])(x)\npush(5)\nreturn nn.Dense(ws[-1])(x)",
    "a function's function": "ws = [3]\nx = nn.Dense(ws[-1])(x)\ngrow_all(ws)\nreturn nn.Dense(ws[-1])(x)",
    "a method": "ws = [3]\nx = nn.Dense(ws[-1])(x)\nself.grown(ws)\nreturn nn.Dense(ws[-1])(x)",
    "a lambda": "add = lambda one: one.append(5)\nws = [3]\nx = nn.Dense(ws[-1])(x)\nadd(ws)\nreturn nn.Dense(ws[-1])(x)",
    "an object that holds it": (
        "ws = [3]\no = Options(ws)\nx = nn.Dense(ws[-1])(x)\no.push(5)\nreturn nn.Dense(ws[-1])(x)"
    ),
    "an object that counts": "t = Tick()\nx = nn.Dense(t())(x)\nreturn x[..., :1] + t.n + nn.Dense(t())(x)",
    "a generator": "r = random.Random(0)\nx = nn.Dense(r.choice([3, 4]))(x)\nreturn x * r.random()",
    "a queue": "q = queue.Queue()\nq.put(3)\nq.put(5)\nx = nn.Dense(q.get())(x)\nreturn x * q.get()",
    "an array of numpy": "ws = np.array([3, 4])\nx = nn.Dense(int(ws[0]))(x)\nnp.put(ws, 0, 6)\nreturn nn.Dense(int(ws[0]))(x)",
    "the variable of a loop": "w = 3\nx = nn.Dense(w)(x)\nfor w in (5, 6):\n    pass\nreturn nn.Dense(w)(x)",
    "a loop into a list": "ws = [3]\nx = nn.Dense(ws[0])(x)\nfor ws[0] in (5, 6):\n    pass\nreturn nn.Dense(ws[0])(x)",
    "nonlocal": (
        "k = 3\ndef following():\n    nonlocal k\n    k += 1\n    return k\n"
        "x = nn.Dense(following())(x)\nx = nn.Dense(following())(x)\nreturn x * k"
    ),
    "a local function that builds": (
        "ws = [3]\nmk = lambda bias: nn.Dense(ws[-1], use_bias=bias)\nx = mk(True)(x)\nws.append(5)\nreturn mk(False)(x)"
    ),
    "rounds that build and do not call": "for w in (2, 4, 3):\n    head = nn.Dense(w)\nreturn head(x)",
    "a name in a comprehension": "return [x := nn.Dense(x.shape[-1] + 1)(x) for w in self.widths][-1]",
    "a key that comes twice": (
        "heads = {k: nn.Dense(n) for k, n in (('x', 3), ('x', 3), ('y', 3))}\n"
        "return sum(head(x) for head in heads.values())"
    ),
    "keys that are computed": (
        "heads = {n % 2: nn.Dense(3) for n in self.widths}\nreturn sum(head(x) for head in heads.values())"
    ),
}  # fmt: skip
EXPLICIT = {
    # The submodule is made in the first call that reaches it, so that nothing here decides about it.
    "an attribute before a condition": (
        "c = SimpleNamespace(deep=True)\nshort = nn.Dense(4)\nc.deep = x.shape[-1] == 5\ny = nn.Dense(4)(x)\n"
        "if c.deep:\n    y = y + short(x)\nreturn y"
    ),
    "a function before a condition": (
        "c = SimpleNamespace(deep=True)\nshort = nn.Dense(4)\nswitch_off(c)\ny = nn.Dense(4)(x)\n"
        "if c.deep:\n    y = y + short(x)\nreturn y"
    ),
    "a list inside of a dict": (
        "ws = [3, 4]\nv = {'w': ws}\nx = nn.Dense(ws[0])(x)\nv['w'][0] = 6\nreturn nn.Dense(ws[0])(x)"
    ),
    "what a local function reads": (
        "ws = [3]\nwidth = lambda: ws[-1]\nx = nn.Dense(width())(x)\nws.append(5)\nreturn nn.Dense(width())(x)"
    ),
    "a statement of its own": "t = Tick()\nw = t()\nx = nn.Dense(w)(x)\nreturn x + t.n",
    "functions that read": (
        "ws = sorted([*self.widths, 2], reverse=True)\nassert len(ws) == 3 and max(ws) == np.max(ws)\n"
        "for w in ws:\n    x = nn.Dense(w)(x)\nreturn x * sum(ws)"
    ),
    "a local function that builds": (
        "ws = [3, 5]\nmk = lambda bias: nn.Dense(ws[-1], use_bias=bias)\nreturn mk(False)(mk(True)(x))"
    ),
    "a list of data": (
        "skips = []\nfor w in self.widths:\n    x = nn.Dense(w)(x)\n    skips.append(x)\n"
        "for w in self.widths[::-1]:\n    x = nn.Dense(w)(jnp.concatenate([x, skips.pop()], -1))\nreturn x"
    ),
    "rounds that call": "for w in self.widths:\n    layer = nn.Dense(w)\n    x = layer(x)\nreturn x",
    "keys apart": (
        "heads = {f'{k}_head': nn.Dense(n) for k, n in (('x', 3), ('y', 3))}\n"
        "return sum(head(x) for head in heads.values())"
    ),
}  # fmt: skip


def form(body: str) -> str:
    source = SOURCE.replace("BODY", textwrap.indent(body, " " * 8))
    return net_alike(source, "jnp.ones((2, 4))")["m.Net"]


@pytest.mark.parametrize("body", LAZY.values(), ids=LAZY)
def test_what_changes_in_silence_keeps_the_class_lazy(body: str) -> None:
    assert form(body) == "lazy"


@pytest.mark.parametrize("body", EXPLICIT.values(), ids=EXPLICIT)
def test_what_is_read_or_changes_in_plain_sight_does_not(body: str) -> None:
    assert form(body) == "explicit"


SETUP = """\
    def setup(self):
BODY
        self.second = nn.Dense(5)

    def __call__(self, x):
        return self.second(self.first(x))
"""


def in_setup(body: str) -> str:
    head, _, tail = SOURCE.partition("    @nn.compact\n    def __call__(self, x):\nBODY\n")
    return head + SETUP.replace("BODY", textwrap.indent(body, " " * 8)) + tail


@pytest.mark.parametrize(
    "body",
    [
        "ws = [3, 7]\nbisect.insort(ws, 2)\nself.first = nn.Dense(ws[0])",
        "ws = [3, 7]\nbisect.insort(a=ws, x=2)\nself.first = nn.Dense(ws[0])",
        "ws = [3, 7]\nbisect.insort(*(ws, 2))\nself.first = nn.Dense(ws[0])",
        "ws = dict(w=[3, 7])\nbisect.insort(ws['w'], 2)\nself.first = nn.Dense(ws['w'][0])",
        "ws = [3, 7]\npair = (ws, 1)\nbisect.insort(pair[0], 2)\nself.first = nn.Dense(ws[0])",
        "ws = [3, 7]\noperator.setitem(ws, 0, 2)\nself.first = nn.Dense(ws[0])",
        "ws = [3, 7, 9, 11]\nnp.random.seed(2)\nnp.random.shuffle(ws)\nself.first = nn.Dense(ws[0])",
        "ws = [3, 7]\nfunctools.partial(bisect.insort, ws)(2)\nself.first = nn.Dense(ws[0])",
        "ws = [3, 7]\nlist(map(functools.partial(bisect.insort, ws), (2, 1)))\nself.first = nn.Dense(ws[0])",
        "ws = [3, 7]\nlist(map(ws.append, (4, 2)))\nself.first = nn.Dense(ws[-1])",
        "ws = [3, 7]\nlist(map(lambda w: ws.append(w), [4, 2]))\nself.first = nn.Dense(ws[-1])",
        "ws = {'w': 3}\nlist(map(lambda w: ws.update(w=w), [4, 2]))\nself.first = nn.Dense(ws['w'])",
    ],
)
def test_sizes_in_setup_are_those_after_the_change(body: str) -> None:
    assert net_alike(in_setup(body), "jnp.ones((2, 4))")["m.Net"] == "explicit"


@pytest.mark.parametrize(
    "body",
    [
        "ws = [3, 7]\nother = sorted(ws)\nself.first = nn.Dense(ws[0])",
        "ws = [3, 7]\nother = functools.reduce(operator.mul, ws)\nself.first = nn.Dense(ws[0])",
        "ws = [3, 7]\nother = int(np.prod(ws))\nself.first = nn.Dense(ws[0])",
        "ws = [3, 7]\nother = ws.index(3)\nself.first = nn.Dense(ws[0])",
    ],
)
def test_functions_that_only_read_a_list_leave_its_sizes_known(body: str) -> None:
    files = {"m.py": in_setup(body)}
    assert "self.second = nnx.Linear(3, 5" in texts(rewrite(files), files)["m.py"]
