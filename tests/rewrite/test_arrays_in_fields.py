"""Dicts, tuples and records of arrays that fields are given, and lists that `setup` makes of them."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
from typing import Any, NamedTuple, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import struct
from flax.core import FrozenDict


class Stats(NamedTuple):
    mean: Any
    std: Any


@struct.dataclass
class Norm:
    mean: jax.Array
    std: jax.Array


class Net(nn.Module):
    held: {annotation}

    def setup(self):
        self.dense = nn.Dense(2)
        {setup}

    def __call__(self, x):
        return self.dense({value})


def main():
    m, s, x = jnp.array([0.1, 0.2]), jnp.array([1.0, 2.0]), jnp.ones(2)
    print(Net({given}).init_with_output(jax.random.key(0), x))
"""
FIELDS = {
    "a dict": ("Any", "pass", "(x - self.held['mean']) / 2", "{'mean': m}"),
    "a FrozenDict": ("Any", "pass", "x - self.held['mean']", "FrozenDict({'mean': m})"),
    "a dict of no type": ("object", "pass", "x - self.held['mean']", "{'mean': m}"),
    "a tuple": ("Any", "pass", "x - self.held[0]", "(m, s)"),
    "a named tuple": ("Stats", "pass", "(x - self.held.mean) / self.held.std", "Stats(m, s)"),
    "a record": ("Norm", "pass", "(x - self.held.mean) / self.held.std", "Norm(m, s)"),
    "a record in quotes": ("'Norm | None'", "pass", "x - self.held.mean", "Norm(m, s)"),
    "a record of any type": ("Any", "pass", "x - self.held.mean", "Norm(m, s)"),
    "a list of setup": (
        "Sequence[jax.Array]",
        "self.parts = [one * 2 for one in self.held]",
        "x - self.parts[0]",
        "[m, s]",
    ),
    "a list of a field of any type": (
        "Any",
        "self.parts = [one * 2 for one in self.held]",
        "x - self.parts[0]",
        "[m, s]",
    ),
    "a dict of setup": ("Any", "self.parts = {'a': self.held}", "x - self.parts['a']", "m"),
}


@pytest.mark.parametrize("parts", FIELDS.values(), ids=FIELDS)
def test_they_are_data_of_an_explicit_module(parts: tuple[str, str, str, str]) -> None:
    names = ("annotation", "setup", "value", "given")
    source = SOURCE.format(**dict(zip(names, parts, strict=True)))
    assert printed_alike(source)["m.Net"] == "explicit"
