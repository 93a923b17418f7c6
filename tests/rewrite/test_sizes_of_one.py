"""Sizes that are 1 somewhere are broadcast: an array beside them has the other size."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

PROGRAM = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Gate(nn.Module):
    width: int{default}

    @nn.compact
    def __call__(self, x):
        y = nn.Dense(self.width)(x) * x
        bias = self.param("bias", nn.initializers.normal(1.0), (y.shape[-1],))
        return nn.Dense(2)(y + bias[None])


class Net(nn.Module):
    heads: int = 1

    @nn.compact
    def __call__(self, x):
        return Gate(self.heads)(x)


def main():
    x = jnp.arange(6.0).reshape(2, 3)
    for model in ({models}):
        values = model.init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, values), model.apply(values, x))
"""


@pytest.mark.parametrize(
    ("default", "models"),
    [("", "Net(3), Net()"), ("", "Gate(1), Gate(width=3)"), (" = 1", "Gate(), Gate(3)")],
)
def test_a_field_that_may_be_one_leaves_the_size_open(default: str, models: str) -> None:
    found = printed_alike(PROGRAM.format(default=default, models=models))
    assert found["m.Gate"] == "explicit"
