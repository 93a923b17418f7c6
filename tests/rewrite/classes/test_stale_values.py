"""What ``setup`` keeps of variables and submodules, which Linen computes anew in each call."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

PROGRAM = """\
import jax
import jax.numpy as jnp
from flax import linen as nn


class M(nn.Module):
    def setup(self):
        self.enc = nn.Dense(4)
        self.words = nn.Embed(2, 4)
        self.drop = nn.Dropout(0.5, deterministic=False)
        self.w = self.param("w", nn.initializers.normal(1.0), (1, 4))
        self.v = self.variable("s", "v", lambda: jnp.ones((1, 1)))
        {body}

    def keep(self, given=1.0):
        {helper}

    def twice(self, given):
        return given * 2

    def __call__(self, x):
        x = self.enc(x) + self.words(jnp.arange(2)) + self.v.value
        {call}
        return x * {result}


def main():
    model, x = M(), jnp.arange(8.0).reshape(2, 4)
    variables = model.init(dict(params=jax.random.key(0), dropout=jax.random.key(1)), x)
    print(jax.tree.map(jnp.shape, variables))
    for seed in range(2):
        rngs = {{"dropout": jax.random.key(seed)}}
        run = jax.jit(lambda v, x: model.apply(v, x, rngs=rngs, mutable=["s"]))
        print(run(variables, x))
        variables = jax.tree.map(lambda one: one * 2, variables)
"""
COUNT = "self.v.value = self.v.value + 1"


def forms(body: str, result: str, helper: str = "pass", call: str = "pass") -> dict[str, str]:
    """The forms in which the program printed the same."""
    lines = body.replace("\n", "\n        ")
    return printed_alike(PROGRAM.format(body=lines, helper=helper, call=call, result=result))


@pytest.mark.parametrize(
    ("body", "helper"),
    [
        ("self.keep()", "self.a = self.w * 2"),
        ("self.keep()", "setattr(self, 'a', self.w)"),
        ("self.keep(self.w)", "self.a = given"),
        ("w = self.w * 2\nself.keep(given=w)", "self.a = given + 1"),
        ("self.keep()", "w = self.twice(self.w); self.a = w"),
    ],
)
def test_what_a_helper_keeps_of_a_parameter(body: str, helper: str) -> None:
    assert forms(body, "self.a", helper)["m.M"] == "lazy"


@pytest.mark.parametrize(
    ("body", "helper", "result"),
    [
        ("self.keep(3.0)", "self.a = given", "self.a"),
        ("self.keep()", "self.a = 2", "self.a"),
        ("self.a = self.twice(self.w)", "pass", "self.a"),
        ("self.a = self.w * 2", "pass", "self.a"),
    ],
)
def test_what_a_helper_keeps_of_other_values(body: str, helper: str, result: str) -> None:
    assert forms(body, result, helper)["m.M"] == "explicit"


@pytest.mark.parametrize("body", ["self.a = self.v.value", "v = self.v.value\nself.a = v * 2"])
def test_what_a_variable_held_when_the_call_began(body: str) -> None:
    assert forms(body, "self.a", call=COUNT)["m.M"] == "lazy"


def test_a_variable_that_no_call_changes_is_followed() -> None:
    assert forms("self.a = self.v.value * 2", "self.a")["m.M"] == "explicit"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("self.a = self.words.embedding", "self.a"),
        ("table = self.words.embedding\nself.a = table / 2", "self.a"),
        ("self.a = self.words(jnp.arange(2))", "self.a"),
        ("self.a = [self.words(jnp.arange(2)), 1.0]", "self.a[0]"),
        ("self.a = self.words.attend(jnp.ones((2, 4))).sum()", "self.a"),
        ("self.a = self.drop(jnp.ones((2, 4)))", "self.a + self.a"),
        ("self.layers = [self.words]\nself.a = [self.layers[0](jnp.arange(2))]", "self.a[0]"),
    ],
)
def test_what_setup_computes_with_submodules(body: str, result: str) -> None:
    assert forms(body, result)["m.M"] == "lazy"


def test_data_of_submodules_is_kept() -> None:
    assert forms("self.a = [self.words.features]", "self.a[0]")["m.M"] == "explicit"
