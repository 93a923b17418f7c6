"""Attributes of arrays, and axes of norms, that sizes follow from."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp


class Pair(NamedTuple):
    real: jax.Array
    imag: jax.Array


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return OUT


def main():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    x = INPUT
    variables = Net().init(jax.random.key(0), x)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), leaf.shape, leaf.sum())
    print(Net().apply(variables, x))
"""


@pytest.mark.parametrize(
    ("out", "given"),
    [
        ("nn.Dense(3)(x.mT)", "x"),
        ("nn.Dense(3)(x.imag) + nn.Dense(3)(x.real)", "x"),
        ("nn.Dense(3)(x.real) + nn.Dense(3)(x.imag).sum()", "Pair(x, x[..., :2])"),
        ("nn.Dense(3)(x.at[0].set(1.0).mT)", "x"),
        ("nn.InstanceNorm(feature_axes=(1,))(x)", "x"),
        ("nn.InstanceNorm(feature_axes=(-1,))(x)", "x"),
        ("nn.LayerNorm(feature_axes=(1, 2), reduction_axes=(1, 2))(x)", "x"),
    ],
)
def test_sizes_are_those_of_the_axes_that_they_show(out: str, given: str) -> None:
    source = SOURCE.replace("OUT", out).replace("INPUT", given)
    assert printed_alike(source)["m.Net"] == "explicit"
