"""Dicts of layers that ``setup`` makes in other ways than by a display."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import net_alike

SOURCE = """\
from typing import *

import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    def setup(self):
SETUP

    def __call__(self, x):
CALL
"""


def form(setup: str, call: str) -> str:
    source = SOURCE.replace("SETUP", textwrap.indent(setup, " " * 8))
    return net_alike(source.replace("CALL", textwrap.indent(call, " " * 8)), "jnp.ones((2, 4))")[
        "m.Net"
    ]


@pytest.mark.parametrize(
    ("setup", "call"),
    [
        ("self.d = dict(a=nn.Dense(3), b=nn.Dense(2))", "return self.d['b'](self.d['a'](x))"),
        ("self.d = dict({'a': nn.Dense(3)}, b=nn.Dense(2))", "return self.d['b'](self.d['a'](x))"),
        (
            "self.d = dict(stages=[nn.Dense(3), nn.Dense(4)], head=nn.Dense(2))",
            "for layer in self.d['stages']:\n    x = layer(x)\nreturn self.d['head'](x)",
        ),
        ("options = dict(features=3)\nself.d = nn.Dense(**options)", "return self.d(x)"),
    ],
)
def test_a_call_of_dict_is_a_dict(setup: str, call: str) -> None:
    assert form(setup, call) == "explicit"


def test_a_size_that_a_loop_over_an_entry_carries_keeps_the_class_lazy() -> None:
    """The name of such a size is the rewriter's own: that a star may import any does not help."""
    setup = "d = {}\nd['a'] = [nn.Dense(3) for _ in range(2)]\nself.d = d"
    assert form(setup, "for layer in self.d['a']:\n    x = layer(x)\nreturn x") == "lazy"
