"""Calls that are given iterators: trials of the call leave them as they are."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    def setup(self):
        self.dense = nn.Dense(3)
        self.embed = nn.Embed(5, 4)

    def __call__(self, ids, scale=1.0):
        return sum(self.dense(self.embed(one)).sum() for one in ids) * scale


def main():
    arrays = [jnp.arange(2), jnp.arange(3)]
    given = ITERATOR
    out, variables = Net().init_with_output(jax.random.key(0), given)
    print(out, [*given], jax.tree.map(jnp.shape, variables))
    print(Net().apply(variables, ITERATOR, scale=2.0))
"""


@pytest.mark.parametrize(
    "iterator",
    [
        "(one for one in arrays)",
        "iter(arrays)",
        "map(jnp.abs, arrays)",
        "reversed(arrays)",
        "arrays",
    ],
)
def test_the_output_and_what_is_left_are_linens(iterator: str) -> None:
    assert printed_alike(SOURCE.replace("ITERATOR", iterator)) == {"m.Net": "explicit"}
