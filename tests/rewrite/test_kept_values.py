"""What ``setup`` keeps is what it was then: nothing that is changed later, or filled in place, is computed anew."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import in_auto, lazy, net_alike

HEAD = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

SEEN = [0]


def next_number():
    global LAST
    SEEN[0] += 1
    LAST = SEEN[0]
    return jnp.float32(LAST)


def following():
    return next_number() + 1


def taken(items):
    items.reverse()
    return items.pop()


def fill(table):
    table[0] = 5.0


"""
NET = """\
class Net(nn.Module):
    def setup(self):
        self.layer = nn.Dense(3)
SETUP

    def used(self):
        return self.table

    def __call__(self, x):
        y = self.layer(x)
        return y * CALL + self.table
"""


def net(setup: str, call: str = "self.used()") -> str:
    return HEAD + NET.replace("SETUP", textwrap.indent(setup, " " * 8)).replace("CALL", call)


FILLED = [
    "self.table = np.ones(3, np.float32)\nself.table[0] = 4",
    "self.table = np.zeros(3, np.float32)\nself.table[0::2] = np.sin(np.arange(2.0))",
    "self.table = np.zeros(3, np.float32)\nself.table.fill(2)",
    "self.table = np.zeros(3, np.float32)\nview = self.table[1:]\nview[0] = 7",
    "self.table = np.zeros(3, np.float32)\nfill(self.table)",
    "self.table = np.zeros(3, np.float32)\nnp.add(self.table, 1, out=self.table)",
]
LATER = [
    "self.gain = 2.0\nself.table = jnp.ones(3) * self.gain\nself.gain = 7.0",
    "self.items = [3, 1, 2]\nself.table = jnp.array(self.items)\nself.items = sorted(self.items)",
]
CHANGING = [
    "ws = [1.0, 2.0]\nself.table = jnp.float32(ws.pop())\nself.gain = ws[-1]",
    "ws = [1.0, 2.0]\nself.table = jnp.array(taken(ws))\nself.gain = ws[-1]",
    "ws = [1.0, 2.0]\ntaken(ws)\nself.table = jnp.array(ws)\nself.gain = 2.0",
]
STEADY = [
    "self.gain = 2.0\nself.table = jnp.ones(3) * self.gain",
    "self.table = np.linspace(0, 1, 3, dtype=np.float32)",
]


@pytest.mark.parametrize("setup", [*FILLED, *LATER, *CHANGING, *STEADY])
def test_a_table_of_setup_is_the_same_wherever_it_is_read(setup: str) -> None:
    assert net_alike(net(setup), "jnp.ones(3)")["m.Net"] == "explicit"


@pytest.mark.parametrize("setup", STEADY)
def test_a_table_that_nothing_changes_is_a_property(setup: str) -> None:
    assert "def table(self):" in in_auto(net(setup))


@pytest.mark.parametrize("setup", ["self.table = np.random.rand(3)", "self.table = following()"])
def test_what_each_setup_draws_anew_is_lazy(setup: str) -> None:
    assert "another value of this in each call" in lazy(net(setup), "Net")


@pytest.mark.parametrize("call", ["self.table.sort()", "fill(self.table)"])
def test_what_a_call_fills_is_lazy(call: str) -> None:
    source = net("self.table = np.ones(3, np.float32)", f"(1 if {call} is None else 2)")
    assert "calls change what self.table holds" in lazy(source, "Net")


BASE = """\
class Base(nn.Module):
    def setup(self):
        self.layer = nn.Dense(3)
SETUP

    def __call__(self, x):
        return self.layer(x) * self.table * self.other


class Net(Base):
    def setup(self):
        super().setup()
        BELOW
"""
OF_ARRAYS = "self.table = jnp.ones(3) * 2\nself.other = self.table + 1"
OF_PARAMETER = (
    "self.scale = self.param('scale', nn.initializers.normal(), (3,))\n"
    "self.table = self.scale * 2\nself.other = self.table + 1"
)


def chain(setup: str, below: str) -> str:
    body = BASE.replace("SETUP", textwrap.indent(setup, " " * 8)).replace("BELOW", below)
    return HEAD + body


@pytest.mark.parametrize("below", ["self.table = jnp.ones(3) * 5", "self.table = self.table * 3"])
def test_a_subclass_replaces_what_its_base_has_read(below: str) -> None:
    assert net_alike(chain(OF_ARRAYS, below), "jnp.ones(3)")["m.Net"] == "explicit"


@pytest.mark.parametrize("below", ["self.table = jnp.ones(3) * 5", "self.table = self.table * 3"])
def test_a_subclass_that_replaces_what_follows_a_parameter_is_lazy(below: str) -> None:
    assert "follows a parameter" in lazy(chain(OF_PARAMETER, below), "Base")
    net_alike(chain(OF_PARAMETER, below), "jnp.ones(3)")
