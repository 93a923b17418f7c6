"""Functions that fields are given: an activation keeps the size of its input, others may not."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

PROGRAM = """\
from typing import Callable
import jax
import jax.numpy as jnp
from flax import linen as nn


def twice(x):
    return jnp.concatenate([x, x], axis=-1)


def leaky(x):
    return nn.leaky_relu(x, 0.2)


class M(nn.Module):
    fn: Callable{default}

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(self.fn(nn.Dense(4)(x)))


def main():
    model, x = M({given}), jnp.arange(8.0).reshape(2, 4)
    variables = model.init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables))
    print(model.apply(variables, x))
"""


@pytest.mark.parametrize("default", ["", " = nn.relu"])
@pytest.mark.parametrize(
    "given",
    ["twice", "fn=twice", "lambda x: x[..., :2]", "leaky", "lambda x: nn.leaky_relu(x, 0.2)"],
)
def test_the_size_behind_a_given_function_is_what_it_gives(given: str, default: str) -> None:
    assert printed_alike(PROGRAM.format(given=given, default=default)) == {"m.M": "explicit"}
