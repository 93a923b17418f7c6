"""What ``setup`` does to variables happens before every call in Linen, and once in ``__init__``."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted, refusal
from tests.rewrite.running import printed_alike

SETUP = """\
class M(nn.Module):
  def setup(self):
    self.v = self.variable("s", "v", jnp.zeros, ())
    {change}

  def __call__(self, x):
    return self.other(x) + self.v.value

  def other(self, x):
    return x

  def move(self):
    self.v.value = self.v.value + 1
"""


@pytest.mark.parametrize(
    "change",
    [
        "self.v.value = jnp.ones(())",
        "self.v.value += 1",
        "v = self.v\n    v.value = jnp.ones(())",
        "self.put_variable('s', 'v', jnp.ones(()))",
        "self.sow('s', 'w', jnp.ones(()))",
        "self.move()",
        "if self.is_initializing():\n      pass\n    else:\n      self.v.value += 1",
        "if not self.is_initializing():\n      self.v.value += 1",
        "for _ in range(2):\n      self.v.value += 1",
    ],
)
def test_a_change_of_state_in_setup_is_refused(change: str) -> None:
    assert "setup changes a variable" in refusal(SETUP.format(change=change)).reason


@pytest.mark.parametrize(
    "change",
    [
        "if self.is_initializing():\n      self.v.value = jnp.ones(())",
        "self.w = 3",
        "self.value = [3]",
    ],
)
def test_what_only_the_initial_call_changes_is_part_of_the_constructor(change: str) -> None:
    assert "def __init__" in converted(SETUP.format(change=change))


ASKING = """\
import jax
import jax.numpy as jnp
from flax import linen as nn


class M(nn.Module):
    def setup(self):
        self.enc = nn.Dense(4)
        self.w = self.param("w", nn.initializers.ones, (1, 4))
        self.v = self.variable("s", "v", {init})
        {body}

    def __call__(self, x):
        return self.enc(x) * self.w * {result} + self.v.value


def main():
    model, x = M(), jnp.arange(8.0).reshape(2, 4)
    rngs = dict(zip(("params", "dropout"), jax.random.split(jax.random.key(0)), strict=True))
    variables = model.init(rngs, x)
    print(jax.tree.map(jnp.shape, variables))
    for seed in range(2):
        for mutable in (False, ["s"]):
            rngs = {{"dropout": jax.random.key(seed)}}
            print(model.apply(variables, x, rngs=rngs, mutable=mutable))
        variables = jax.tree.map(lambda one: one * 2, variables)
"""
ZEROS = "jnp.zeros, (1, 1)"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("self.first = self.is_initializing()", "(2 if self.first else 1)"),
        ("self.scale = 2.0 if self.is_initializing() else 1.0", "self.scale"),
        ("if self.is_initializing():\n    self.a = 2\nelse:\n    self.a = 1", "self.a"),
        ("self.a = 1\nif self.is_initializing():\n    self.a = 2", "self.a"),
        ("self.was = self.has_variable('s', 'later')", "(1 if self.was else 3)"),
        ("self.moves = self.is_mutable_collection('s')", "(3 if self.moves else 1)"),
        ("self.key = self.make_rng('dropout')", "jax.random.uniform(self.key)"),
        ("self.old = self.get_variable('params', 'w')", "self.old"),
        ("self.old = self.variables['params']['w']", "self.old"),
    ],
)
def test_what_setup_asks_is_answered_in_each_call(body: str, result: str) -> None:
    lines = body.replace("\n", "\n        ")
    found = printed_alike(ASKING.format(init=ZEROS, body=lines, result=result))
    assert found["m.M"] == "lazy"


@pytest.mark.parametrize(
    ("init", "body"),
    [
        (ZEROS, "self.a = 1"),
        ("lambda: jax.random.normal(self.make_rng('params'), (1, 1))", "pass"),
        ("lambda: jnp.ones((1, 1)) * self.is_initializing()", "pass"),
        (ZEROS, "if self.is_initializing():\n            self.v.value = jnp.ones((1, 1))"),
    ],
)
def test_what_makes_first_values_may_ask(init: str, body: str) -> None:
    found = printed_alike(ASKING.format(init=init, body=body, result="1"))
    assert found["m.M"] == "explicit"
