"""Inputs that are no arrays: of a tuple or a record nobody reads the shape of an array."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import printed_alike

HEAD = """\
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp


class Pair(NamedTuple):
    x: Any
    y: Any


"""
MAIN = """

def main():
    inputs = {inputs}
    variables = Net().init(jax.random.key(0), inputs)
    print(jax.tree.map(lambda one: (one.shape, one.sum()), variables))
    print(Net().apply(variables, inputs))
"""
PAIR = "Pair(jnp.ones((2, 6, 4)), jnp.ones((2, 6, 3)))"


def program(argument: str, body: str, inputs: str) -> str:
    call = textwrap.indent(textwrap.dedent(body), " " * 8)
    head = f"class Net(nn.Module):\n    @nn.compact\n    def __call__(self, {argument}):\n"
    return f"{HEAD}{head}{call}{MAIN.format(inputs=inputs)}"


POSITIONS = "pos = self.param('pos', nn.initializers.normal(), x.shape[1:])\n"
LAZY = {
    "a tuple that is taken apart": ("inputs", f"x, y = inputs\n{POSITIONS}return x.sum() * pos\n"),
    "an item of a list": ("inputs", f"x = inputs[0]\n{POSITIONS}return x.sum() * pos\n"),
    "a tuple under another name": (
        "inputs",
        f"both = inputs\nx, y = both\n{POSITIONS}return x.sum() * pos\n",
    ),
    "a list that is gone through": (
        "inputs",
        f"for x in inputs:\n    last = x\nx = last + 0\n{POSITIONS}return x.sum() * pos\n",
    ),
    "a record": ("p", f"x = p.x\n{POSITIONS}return x.sum() * pos\n"),
    "a record with the name of its field": (
        "x",
        f"y = x.x\n{POSITIONS.replace('x.shape', 'y.shape')}return y.sum() * pos\n",
    ),
}


@pytest.mark.parametrize(("argument", "body"), LAZY.values(), ids=LAZY)
def test_a_class_that_needs_a_whole_shape_of_a_part_is_lazy(argument: str, body: str) -> None:
    assert printed_alike(program(argument, body, PAIR)) == {"m.Net": "lazy"}


@pytest.mark.parametrize(
    ("argument", "body"),
    [
        ("inputs", "x, y = inputs\nreturn nn.Dense(3)(x).sum() + nn.Dense(2)(y).sum()\n"),
        ("p", "return nn.Dense(3)(p.x).sum() + nn.Dense(2)(p.y).sum()\n"),
        ("x", "return nn.Dense(3)(x.x).sum()\n"),
        ("y", "return nn.Dense(3)(jnp.concatenate([y.x, y.y], -1)).sum()\n"),
    ],
    ids=["of a tuple", "of a record", "of the field x of x", "of both fields of y"],
)
def test_a_class_that_needs_the_last_axes_of_parts_is_explicit(argument: str, body: str) -> None:
    assert printed_alike(program(argument, body, PAIR)) == {"m.Net": "explicit"}


@pytest.mark.parametrize(
    "body",
    [
        f"first = x[0]\n{POSITIONS}return first * pos + x[1]\n",
        f"a, b = x\n{POSITIONS}return x[:, 0].sum() * pos[0] + a[0] + b[0]\n",
        f"x = x.astype(jnp.float32).mean(-1)\n{POSITIONS}return x.sum() * pos\n",
    ],
)
def test_an_array_is_one_whatever_is_taken_of_it(body: str) -> None:
    assert printed_alike(program("x", body, "jnp.ones((2, 6, 4))")) == {"m.Net": "explicit"}


def test_a_layer_whose_shape_only_calls_show_is_not_run_in_the_constructor() -> None:
    body = (
        "x = nn.ConvLocal(4, (2, 2), padding='VALID')(x[..., None])\n"
        "x = nn.pooling.pool(x, 0.0, jax.lax.add, (1, 2), (1, 1), 'SAME')\n"
        "x = x.reshape(*x.shape[:-2], -1)\nreturn nn.Dense(x.shape[-1] // 2)(x)\n"
    )
    assert printed_alike(program("x", body, "jnp.ones((2, 5, 4))")) == {"m.Net": "lazy"}
