"""Dicts of which the text does not say every entry."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import net_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    widths: tuple = (("a", 3), ("b", 2))

    @nn.compact
    def __call__(self, x):
BODY
        return x
"""


@pytest.mark.parametrize(
    "body",
    [
        "for k, w in dict(self.widths).items():\n    x = nn.Dense(w, name=k)(x)",
        "for w in dict(self.widths).values():\n    x = nn.Dense(w)(x)",
        "x = nn.Dense(dict(self.widths)['b'])(nn.Dense(dict(self.widths).get('a'))(x))",
        "for k, w in {**dict(self.widths), 'c': 5}.items():\n    x = nn.Dense(w)(x)",
    ],
)
def test_every_entry_counts(body: str) -> None:
    net_alike(SOURCE.replace("BODY", textwrap.indent(body, " " * 8)), "jnp.ones((2, 4))")
