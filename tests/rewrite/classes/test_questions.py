"""What Linen's ``init`` answers otherwise than later calls: submodules that hang on it are built anew in each."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import printed_alike

HEAD = """\
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp


calls = []


class Child(nn.Module):
    train: bool

    @nn.compact
    def __call__(self, x):
        return nn.Dropout(0.5, deterministic=not self.train)(x)


class Net(nn.Module):
"""

MAIN = """

def main():
    net, x, key = Net(), jnp.arange(15.0).reshape(5, 3) + 1, jax.random.key(3)
    variables = net.init({"params": key, "dropout": key}, x)
    print(jax.tree.map(lambda one: (one.shape, one.sum()), variables))
    for mutable in (False, ["batch_stats"], ["intermediates"]):
        for values in (variables, jax.tree.map(lambda one: one * 3, variables)):
            try:
                print(net.apply(values, x, rngs={"dropout": key}, mutable=mutable))
            except Exception as error:
                print(type(error).__mro__[-3:])
"""


def program(body: str, members: str = "") -> str:
    call = textwrap.indent(textwrap.dedent(body), " " * 8)
    more = textwrap.indent(textwrap.dedent(members), " " * 4)
    return f"{HEAD}{more}\n    @nn.compact\n    def __call__(self, x):\n{call}{MAIN}"


BUILT_WITH = {
    "a flag": (
        "first = self.is_initializing()\n"
        "return nn.BatchNorm(use_running_average=False, momentum=0.0 if first else 0.9)(x)\n"
    ),
    "a collection that may change": (
        "rate = 0.5 if self.is_mutable_collection('batch_stats') else 0.1\n"
        "return nn.Dropout(rate, deterministic=False)(x)\n"
    ),
    "a value that a branch sets": (
        "rate = 0.9\nif self.is_initializing():\n    rate = 0.1\n"
        "return nn.Dropout(rate, deterministic=False)(x)\n"
    ),
    "a field of a submodule": "return Child(train=not self.is_initializing())(x)\n",
    "arguments in a dict": (
        "given = dict(rate=0.1 if self.is_initializing() else 0.8)\n"
        "return nn.Dropout(**given, deterministic=False)(x)\n"
    ),
    "what a function inside asks": (
        "rate = lambda: 0.1 if self.is_initializing() else 0.8\n"
        "return nn.Dropout(rate(), deterministic=False)(x)\n"
    ),
    "what a submodule is asked": (
        "norm = nn.BatchNorm(use_running_average=True)\nx = norm(x)\n"
        "known = norm.has_variable('batch_stats', 'mean')\n"
        "return nn.Dropout(0.1 if known else 0.8, deterministic=False)(x)\n"
    ),
    "a variable's value": (
        "rate = self.variable('batch_stats', 'rate', lambda: jnp.full((), 0.25))\n"
        "return nn.Dropout(float(rate.value), deterministic=False)(x)\n"
    ),
    "a parameter's value": (
        "scale = self.param('scale', nn.initializers.ones, ())\n"
        "return nn.Dropout(0.5 if float(scale) > 2 else 0.1, deterministic=False)(x)\n"
    ),
    "a key": (
        "rate = float(jax.random.uniform(self.make_rng('dropout')))\n"
        "return nn.Dropout(rate, deterministic=False)(x)\n"
    ),
    "a global that it changes": (
        "calls.append(1)\nreturn nn.Dropout(0.5 if len(calls) % 2 else 0.1, deterministic=False)(x)\n"
    ),
}


@pytest.mark.parametrize("body", BUILT_WITH.values(), ids=BUILT_WITH)
def test_a_class_is_lazy_that_builds_with(body: str) -> None:
    assert printed_alike(program(body))["m.Net"] == "lazy"


MEMBERS = {
    "a method asks": ("def first(self):\n    return self.is_initializing()\n", "self.first()"),
    "a property asks": (
        "@property\ndef first(self):\n    return self.is_initializing()\n",
        "self.first",
    ),
    "a method asks through another": (
        "def flag(self):\n    return self.is_initializing()\n"
        + "def first(self):\n    return not self.flag()\n",
        "self.first()",
    ),
    "setup makes a variable": (
        "def setup(self):\n    self.seen = self.variable('batch_stats', 'seen', jnp.zeros, ())\n",
        "bool(self.seen.value > 0)",
    ),
}


@pytest.mark.parametrize(("members", "asked"), MEMBERS.values(), ids=MEMBERS)
def test_a_class_is_lazy_that_builds_with_what_another_member_asks(
    members: str, asked: str
) -> None:
    body = f"return nn.Dropout(0.1 if {asked} else 0.8, deterministic=False)(x)\n"
    assert printed_alike(program(body, members))["m.Net"] == "lazy"


DECIDED = {
    "one of two": (
        "if self.is_initializing():\n    x = nn.Dropout(0.5, deterministic=False)(x)\n"
        "else:\n    x = nn.Dropout(0.9, deterministic=False)(x)\nreturn x\n"
    ),
    "one of two in an expression": (
        "layer = nn.Dropout(0.5) if self.is_initializing() else nn.Dropout(0.9)\n"
        "return layer(x, deterministic=False)\n"
    ),
    "so many": (
        "for _ in range(1 if self.is_initializing() else 3):\n"
        "    x = nn.Dropout(0.5, deterministic=False)(x)\nreturn x\n"
    ),
    "what follows a return": (
        "x = nn.Dense(5)(x)\nif self.is_initializing():\n    return x\n"
        "return nn.Dropout(0.5, deterministic=False)(x)\n"
    ),
    "what follows a return in a loop": (
        "for n in range(3):\n    if n == 1 and not self.is_initializing():\n        return x\n"
        "    x = nn.Dropout(0.5, deterministic=False)(x)\nreturn x\n"
    ),
}


@pytest.mark.parametrize("body", DECIDED.values(), ids=DECIDED)
def test_a_class_is_lazy_where_an_answer_decides_whether_it_builds(body: str) -> None:
    assert printed_alike(program(body))["m.Net"] == "lazy"


EXPLICIT = {
    "a flag of a layer, which its call takes, too": (
        "first = self.is_initializing()\nreturn nn.Dropout(0.5, deterministic=first)(x)\n"
    ),
    "a flag of a partial": (
        "drop = partial(nn.Dropout, deterministic=self.is_initializing())\nreturn drop(0.5)(x)\n"
    ),
    "whether statistics may change": (
        "mutable = self.is_mutable_collection('batch_stats')\n"
        "return nn.BatchNorm(use_running_average=not mutable)(x)\n"
    ),
    "what is done with the output": (
        "x = nn.Dense(5)(x)\nif self.is_initializing():\n    return x\nreturn x * 2\n"
    ),
    "an update": (
        "seen = self.variable('batch_stats', 'seen', jnp.zeros, ())\nx = nn.Dense(5)(x) + seen.value\n"
        "if self.is_mutable_collection('batch_stats'):\n    seen.value = seen.value + 1\nreturn x\n"
    ),
    "a layer with variables that only init makes": (
        "if self.is_initializing():\n    x = nn.Dense(3, name='more')(x)\nreturn x\n"
    ),
    "layers with variables that later calls return before": (
        "for n in range(3):\n    if n == 1 and not self.is_initializing():\n        return x\n"
        "    x = nn.Dense(3, name=f'dense_{n}')(x)\nreturn x\n"
    ),
    "what shape a parameter has": (
        "scale = self.param('scale', nn.initializers.ones, (1, 3))\n"
        "return nn.Dense(scale.shape[-1])(x * scale)\n"
    ),
    "the shape of a parameter": (
        "scale = self.param('scale', nn.initializers.ones, (1, 3))\n"
        "x = x * scale\nreturn nn.Dense(x.shape[-1])(x)\n"
    ),
}


@pytest.mark.parametrize("body", EXPLICIT.values(), ids=EXPLICIT)
def test_a_class_is_explicit_where_the_call_asks_about(body: str) -> None:
    assert printed_alike(program(body))["m.Net"] == "explicit"
