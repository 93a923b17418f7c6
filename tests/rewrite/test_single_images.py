"""Convolutions of one image, without a batch, as well as of several."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    flag: bool = True

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(4, (3, 3), strides=(2, 2))(x)
BODY


def main():
    image = jnp.arange(128.0).reshape(8, 8, 2)
    for x in IMAGES:
        variables = Net().init(jax.random.key(0), x)
        print(jax.tree.map(lambda one: (one.shape, float(one.sum())), variables))
        print(Net().apply(variables, x))
        print(jax.vmap(lambda one: Net().apply(variables, one))(jnp.stack([x, x * 2])))
"""
ONE, BATCH, BOTH = "[image]", "[jnp.stack([image, image + 1])]", "[image, image[None]]"


@pytest.mark.parametrize(
    ("body", "images"),
    [
        ("x = x.reshape(-1)\nreturn nn.Dense(3)(x)", ONE),
        ("return nn.Dense(3)(x.reshape((1, -1)))", ONE),
        ("return nn.Dense(3)(jnp.ravel(x))", ONE),
        ("return nn.Dense(3)(x.mean((0, 1)))", ONE),
        ("x = nn.max_pool(x, (2, 2))\nreturn nn.Dense(3)(x.flatten())", ONE),
        ("return nn.Dense(3)(x.reshape(x.shape[:-3] + (-1,)))", BOTH),
        ("return nn.Dense(3)(x.reshape((x.shape[0], -1)))", BATCH),
        ("if x.shape[0] > 1 and self.flag:\n    x = nn.Dense(3)(x)\nreturn x", ONE),
        (
            (
                "y = nn.Conv(4, (3, 3), strides=2)(x)\ny = nn.relu(nn.Conv(4, (3, 3))(y))\n"
                "if x.shape != y.shape:\n    x = nn.Conv(4, (1, 1), strides=2)(x)\nreturn x + y"
            ),
            BATCH,
        ),
        ("return x + self.param('p', nn.initializers.ones, (x.shape[0], 4, 1))", ONE),
    ],
)
def test_its_sizes_are_those_of_what_is_given(body: str, images: str) -> None:
    lines = textwrap.indent(body, " " * 8)
    forms = printed_alike(SOURCE.replace("BODY", lines).replace("IMAGES", images))
    assert forms == {"m.Net": "explicit"}
