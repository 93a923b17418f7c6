"""Attributes of arrays, and axes of norms, that sizes follow from."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike

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
"""
X = "jnp.arange(24.0).reshape(2, 3, 4)"


@pytest.mark.parametrize(
    ("out", "given"),
    [
        ("nn.Dense(3)(x.mT)", X),
        ("nn.Dense(3)(x.imag) + nn.Dense(3)(x.real)", X),
        ("nn.Dense(3)(x.real) + nn.Dense(3)(x.imag).sum()", f"Pair({X}, {X}[..., :2])"),
        ("nn.Dense(3)(x.at[0].set(1.0).mT)", X),
        ("nn.InstanceNorm(feature_axes=(1,))(x)", X),
        ("nn.InstanceNorm(feature_axes=(-1,))(x)", X),
        ("nn.LayerNorm(feature_axes=(1, 2), reduction_axes=(1, 2))(x)", X),
    ],
)
def test_sizes_are_those_of_the_axes_that_they_show(out: str, given: str) -> None:
    assert net_alike(SOURCE.replace("OUT", out), given)["m.Net"] == "explicit"
