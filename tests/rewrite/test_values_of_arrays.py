"""Calls that ask for values of arrays: Linen's ``init`` and ``apply`` run them where nothing is traced."""

from __future__ import annotations

import pytest

from tests.rewrite.running import net_alike

NET = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        n = jnp.max(jnp.array((2, 1)))
        x = nn.Dense(3)(x)
        return {} * self.param("scale", nn.initializers.ones, ())
"""


@pytest.mark.parametrize(
    "value",
    [
        "x.reshape(n, -1)",
        "x[:n]",
        "jnp.zeros((n, 3))",
        "jnp.split(x, n)[0]",
        "x * float(n)",
        "(x if n > 1 else -x)",
        "x * [1.0, 2.0, 3.0][n]",
        "(x + np.asarray(x).sum())",
        "x[x[:, 0] > 0.5]",
    ],
)
def test_values_are_there_where_linen_has_them(value: str) -> None:
    assert net_alike(NET.format(value), "jnp.ones((2, 3))") == {"m.Net": "explicit"}
