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


def test_a_size_that_a_loop_over_an_entry_carries_is_the_rounds_own() -> None:
    setup = "d = {}\nd['a'] = [nn.Dense(3) for _ in range(2)]\nself.d = d"
    assert form(setup, "for layer in self.d['a']:\n    x = layer(x)\nreturn x") == "explicit"


def test_one_that_only_some_rounds_carry_keeps_the_class_lazy() -> None:
    """The name of such a size is the rewriter's own: that a star may import any does not help."""
    setup = "d = {}\nd['a'] = [nn.Dense(3) for n in (1, 2) if n]\nself.d = d"
    assert form(setup, "for layer in self.d['a']:\n    x = layer(x)\nreturn x") == "lazy"


KEYED = """\
    tags: tuple = ("a", "b")
    sizes: tuple = (("a", 2), ("b", 3))

    def setup(self):
"""


@pytest.mark.parametrize(
    ("setup", "call", "wanted"),
    [
        ("k: nn.Dense(3) for k in self.tags", "{k: self.d[k](x) for k in self.tags}", "explicit"),
        ("k: nn.Dense(3) for k in self.tags", "[self.d[t](x) for t in self.tags]", "explicit"),
        ("k: nn.Dense(n) for k, n in self.sizes", "[d(x) for d in self.d.values()]", "explicit"),
        ("k: nn.Dense(3) for k in self.tags", "[self.d['a'](x), self.d['b'](x)]", "explicit"),
        ("k: nn.Dense(3) for k in self.tags", "[self.d[k](x) for k in self.tags[:1]]", "explicit"),
        ("k: nn.Dense(3) for k in self.tags", "[self.d[k](x) for k in 'ab']", "explicit"),
        ("k: nn.Dense(3) for k in self.tags", "[self.d[k](x) for k in self.tags if k]", "explicit"),
        ("k * 2: nn.Dense(3) for k in 'ab'", "[self.d[k + k](x) for k in self.tags]", "explicit"),
    ],
)
def test_a_dict_by_the_names_of_a_field_is_met_by_a_loop_over_them(
    setup: str, call: str, wanted: str
) -> None:
    source = SOURCE.replace("    def setup(self):\n", KEYED)
    source = source.replace("SETUP", f"        self.d = {{{setup}}}")
    source = source.replace(
        "CALL", f"        return jnp.concatenate([*jax.tree.leaves({call})], -1)"
    )
    assert net_alike(source, "jnp.ones((2, 4))")["m.Net"] == wanted


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ("q, k, v = (nn.Dense(3, name=n)(x) for n in 'qkv')", "explicit"),
        ("both = (nn.Dense(3, name=n)(x) for n in 'qk')\nv = x.sum()\nq, k = both", "lazy"),
    ],
)
def test_a_generator_that_is_unpacked_runs_where_it_stands(names: str, wanted: str) -> None:
    source = SOURCE.replace("    def setup(self):\nSETUP\n\n    def", "    @nn.compact\n    def")
    source = source.replace("CALL", textwrap.indent(f"{names}\nreturn q * k + v", " " * 8))
    assert net_alike(source, "jnp.ones((2, 4))")["m.Net"] == wanted
