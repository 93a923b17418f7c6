"""Functions that a loop stores: Python looks up what they read when they are called."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

PROGRAM = """\
import jax
import jax.numpy as jnp
from flax import linen as nn


class M(nn.Module):
    def setup(self):
        self.layers = [nn.Dense(4) for _ in range(3)]

    def __call__(self, x):
        {body}


def main():
    model, x = M(), jnp.arange(8.0).reshape(2, 4)
    variables = model.init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables))
    print(model.apply(variables, x))
"""

LATE = {
    "a comprehension": "return sum(f(x) for f in [lambda y: layer(y) for layer in self.layers])",
    "one of them is called": "return [lambda y: layer(y) for layer in self.layers][0](x)",
    "a dict": "fs = {i: (lambda y: self.layers[i](y)) for i in range(3)}\n        return fs[0](x)",
    "a list that a loop fills": (
        "fs = []\n        for layer in self.layers:\n            fs.append(lambda y: layer(y))\n"
        "        for f in fs:\n            x = f(x)\n        return x"
    ),
    "a function that a loop defines": (
        "fs = []\n        for layer in self.layers:\n            def f(y):\n                return layer(y)\n"
        "            fs.append(f)\n        return fs[0](x)"
    ),
}


@pytest.mark.parametrize("body", LATE.values(), ids=LATE)
def test_a_stored_function_that_reads_what_a_round_binds_makes_the_class_lazy(body: str) -> None:
    assert printed_alike(PROGRAM.format(body=body)) == {"m.M": "lazy"}


EARLY = {
    "a function that is called in its round": (
        "for layer in self.layers:\n            x = (lambda y: layer(y))(x)\n        return x"
    ),
    "a function that reads nothing of the rounds": (
        "fs = [lambda y: y * 2 for _ in range(2)]\n        for layer in self.layers:\n"
        "            x = fs[0](layer(x))\n        return x"
    ),
}


@pytest.mark.parametrize("body", EARLY.values(), ids=EARLY)
def test_other_functions_in_loops_do_not(body: str) -> None:
    assert printed_alike(PROGRAM.format(body=body)) == {"m.M": "explicit"}
