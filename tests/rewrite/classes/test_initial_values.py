"""Variables that start at the value of another one: where that is there before them, a constructor would not know it."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
import jax
import jax.numpy as jnp


class Net(nn.Module):
    {body}


def main():
    x = jnp.ones((2, 4))
    params = Net().init(jax.random.key(0), x)["params"]
    params = jax.tree.map(lambda one: one + 1, params)
    for rngs in ({}, {"params": jax.random.key(5)}):
        out, state = Net().apply({"params": params}, x, mutable=["state", "others"], rngs=rngs)
        print(out, jax.tree.map(jnp.sum, state))
"""
)
COMPACT = """@nn.compact
    def __call__(self, x):
        codes = self.param("codes", nn.initializers.normal(1.0), (5, 4))
        {before}
        mean = self.variable("state", "mean", {init})
        return x @ codes.T + mean.value.sum()
"""
SETUP = """def setup(self):
        self.codes = self.param("codes", nn.initializers.normal(1.0), (5, 4))
        self.mean = self.variable("state", "mean", {init})

    def __call__(self, x):
        return x @ self.codes.T + self.mean.value.sum()
"""
FOLLOWING = {
    "the parameter": ("pass", "lambda: codes"),
    "what is computed of it": ("twice = codes * 2", "lambda: twice"),
    "an argument": ("pass", "jnp.asarray, codes"),
    "a fill value": ("pass", "jnp.full, (2,), codes[0, 0]"),
    "a function": ("def start():\n            return codes[:2]", "start"),
    "another variable": (
        'first = self.variable("others", "first", jnp.ones, (2,))',
        "lambda: first.value + 1",
    ),
}
APART = {
    "the shape": ("pass", "jnp.zeros, codes.shape"),
    "the shape, in a lambda": ("pass", "lambda: jnp.zeros(codes.shape[-1])"),
    "zeros alike": ("pass", "jnp.zeros_like, codes"),
    "ones alike": ("pass", "lambda: jnp.ones_like(codes)"),
    "a variable of its collection": (
        'first = self.variable("state", "first", jnp.ones, (2,))',
        "lambda: first.value + 1",
    ),
    "numbers": ("pass", "lambda: jnp.arange(4.0)"),
}


@pytest.mark.parametrize(("before", "init"), FOLLOWING.values(), ids=FOLLOWING)
def test_a_class_whose_variable_starts_at_another_is_lazy(before: str, init: str) -> None:
    program = PROGRAM.replace("{body}", COMPACT.format(before=before, init=init))
    assert printed_alike(program)["m.Net"] == "lazy"


@pytest.mark.parametrize(("before", "init"), APART.values(), ids=APART)
def test_shapes_of_others_keep_it_explicit(before: str, init: str) -> None:
    program = PROGRAM.replace("{body}", COMPACT.format(before=before, init=init))
    assert printed_alike(program)["m.Net"] == "explicit"


@pytest.mark.parametrize(
    ("init", "form"),
    [("lambda: 2 * self.codes", "lazy"), ("jnp.zeros, self.codes.shape", "explicit")],
)
def test_attributes_that_setup_makes_are_followed(init: str, form: str) -> None:
    program = PROGRAM.replace("{body}", SETUP.format(init=init))
    assert printed_alike(program)["m.Net"] == form
