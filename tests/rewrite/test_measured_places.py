"""Sizes that only a call shows: which submodule's input is measured, and what runs before it."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import lazy, net_alike

HEAD = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Pair(nn.Module):
    widths: tuple = (3, 4)

    @nn.compact
    def __call__(self, x):
        for width in self.widths:
            x = nn.Dense(width)(x)
        return x


class Step(nn.Module):
    width: int

    @nn.compact
    def __call__(self, carry, _):
        return jnp.tanh(nn.Dense(self.width)(carry)), carry.sum()


class Base(nn.Module):
    def setup(self):
        self.p = nn.Dense(2)

    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(self.p(x))

    def part(self, x):
        return self.p(x)


class Net(BASE):
    n: int = 3

"""


def net(body: str, setup: str = "", base: str = "nn.Module") -> str:
    """A program with a class of this ``setup`` and compact call."""
    text = "" if not setup else "def setup(self):\n" + textwrap.indent(setup, "    ") + "\n\n"
    text += "@nn.compact\ndef __call__(self, x):\n" + textwrap.indent(body, "    ")
    return HEAD.replace("BASE", base) + textwrap.indent(text, "    ") + "\n"


NUMBERS = "ws = []\nfor i in range(2, 5):\n    ws.append(i)\n"
BESIDE_SETUP = [
    ("self.p = nn.Dense(self.n)", "m = nn.Dense(ws[-1])\nreturn self.p(m(nn.Dense(ws[0])(x)))"),
    ("self.p = nn.Dense(self.n)", "return self.p(nn.Dense(ws[1])(nn.Dense(ws[0])(x)))"),
    (
        "def make(n):\n    return nn.Dense(n)\nself.p = make(self.n)",
        "return nn.Dense(ws[1])(nn.Dense(ws[0])(self.p(x)))",
    ),
    (
        "self.ps = [Pair((w, 2)) for w in (2, 3)]",
        "x = Pair((ws[0],))(x)\nx = Pair((ws[1],))(x)\nfor p in self.ps:\n    x = p(x)\nreturn x",
    ),
]


@pytest.mark.parametrize(("setup", "body"), BESIDE_SETUP)
def test_what_setup_builds_takes_no_number_of_the_compact_method(setup: str, body: str) -> None:
    assert net_alike(net(NUMBERS + body, setup), "jnp.ones((2, 3))")["m.Net"] == "explicit"


UNKNOWN = "if self.n == 5:\n    for _ in range(self.n):\n        x = jnp.concatenate([x, x], -1)\n"
BEHIND = [
    "for i in range(2):\n    a = x\n    for w in (2, 3):\n        a = Pair()(a)\n    x = jnp.concatenate([x, a], -1)\nreturn nn.LayerNorm()(x)",
    "for w in (3, 4):\n    x = jnp.concatenate([x, nn.Dense(w)(x)], -1)\nreturn nn.LayerNorm()(x)",
    "for i in range(2):\n    x = jnp.concatenate([x, nn.tanh(x)[..., :2]], -1)\nreturn nn.LayerNorm()(x)",
]


@pytest.mark.parametrize("body", BEHIND)
def test_a_layer_behind_a_loop_does_not_show_where_the_loop_starts(body: str) -> None:
    assert net_alike(net(UNKNOWN + body), "jnp.ones((2, 3))")["m.Net"] == "explicit"


OVER_NUMBERS = [
    "for w in ws:\n    x = nn.LayerNorm()(Pair((2, w))(x))\nreturn x",
    "for a, b in zip(ws, ws[::-1]):\n    x = nn.LayerNorm()(nn.Dense(2)(x))\nreturn nn.Dense(3)(x)",
    "for w in ws:\n    x = nn.Dense(w)(x)\nfor w in ws[1:]:\n    x = jnp.concatenate([x, nn.Dense(w)(x)], -1)\nreturn nn.LayerNorm()(x)",
]


@pytest.mark.parametrize("body", OVER_NUMBERS)
def test_a_size_goes_along_with_the_loop_that_builds_and_not_with_one_that_made_numbers(
    body: str,
) -> None:
    assert net_alike(net(NUMBERS + body), "jnp.ones((2, 3))")["m.Net"] == "explicit"


OF_BASES = [
    "x = super().__call__(x)\nreturn nn.Dense(abs(x.shape[1] - 9))(x)",
    "x = Base.__call__(self, x)\nreturn nn.Dense(x.shape[1] % 3 + 2)(x)",
]


@pytest.mark.parametrize("body", OF_BASES)
def test_a_shape_behind_a_method_of_the_base_is_not_computed_in_the_constructor(body: str) -> None:
    source = net(body, base="Base")
    assert lazy(source, "Net")
    net_alike(source, "jnp.ones((2, 3))")


def test_a_shape_behind_parts_in_a_list_is_not_computed_in_the_constructor() -> None:
    setup = "self.w = 6 - self.n\nself.ps = [Pair((w, 2)) for w in [5, 3, self.w]]\nself.ks = [i for i in range(len(self.ps))]"
    body = "for k in self.ks:\n    x = self.ps[k](x)\nx = x[..., :2]\nreturn nn.Dense(x.shape[-1] // 2 + 1)(x)"
    net_alike(net(body, setup), "jnp.ones((2, 3))")


SCANNED = "x, _ = nn.scan(Step, variable_axes={'params': 0}, split_rngs={'params': True}, length=self.n)(x.shape[-1])(x, None)\n"
MAPPED = "x = nn.vmap(Pair, variable_axes={'params': 0}, split_rngs={'params': True}, in_axes=None, out_axes=1, axis_size=self.n)((4,))(x).mean(1)\n"


@pytest.mark.parametrize("lifted", [MAPPED])
def test_a_shape_behind_a_stacked_module_decides(lifted: str) -> None:
    body = lifted + "for w in [x.shape[1]] * 2:\n    x = nn.Dense(w)(x)\nreturn x"
    assert net_alike(net(body), "jnp.ones((2, 3))")["m.Net"] == "explicit"


def test_a_shape_behind_a_scanned_module_decides() -> None:
    """Made outside of ``jax.jit`` its values may differ in the last bit (docs/limits.md)."""
    body = SCANNED + "return nn.Dense(x.shape[1])(x).shape[-1] * jnp.ones(2)"
    source = net(body).replace("nn.Dense(self.width)", "nn.Dense(self.width, kernel_init=ONES)")
    source = source.replace("class Step", "ONES = nn.initializers.ones\n\n\nclass Step")
    assert net_alike(source, "jnp.ones((2, 3))")["m.Net"] == "explicit"
