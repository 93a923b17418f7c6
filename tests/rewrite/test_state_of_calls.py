"""State that calls make, ask for and change, where ``apply`` is given all of it, or less."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import printed_alike

PROGRAM = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
{body}


def main():
    x = jnp.sin(jnp.arange(8.0)).reshape(2, {length}, -1)
    outputs, variables = Net().init_with_output(jax.random.key(0), x)
    print(outputs, jax.tree.map(lambda one: (jnp.shape(one), jnp.sum(one)), variables))
    for given in (variables, {{"params": variables.get("params", {{}})}}):
        for mutable in (["cache", "batch_stats"], ["cache", "batch_stats", "params"], True):
            state = given
            for _ in range(2):
                outputs, new = Net().apply(state, x, mutable=mutable)
                state = {{**state, **new}}
                print(mutable, outputs, jax.tree.map(lambda one: (jnp.shape(one), jnp.sum(one)), new))
"""
COUNT = 'n = self.variable("cache", "n", lambda: jnp.zeros(()))\n'
EXPLICIT = {
    "a question before the variable is made": (
        f'there = self.has_variable("cache", "n")\n{COUNT}'
        "if there:\n    n.value = n.value + 1\nreturn nn.Dense(2)(x) + n.value"
    ),
    "a value before the variable is made": (
        f'old = self.get_variable("cache", "n", -5.0)\n{COUNT}'
        "n.value = old + 1\nreturn nn.Dense(2)(x) * old"
    ),
    "parameters that may change": (
        f'{COUNT}if not self.is_mutable_collection("params"):\n    n.value += 1\nreturn nn.Dense(2)(x) + n.value'
    ),
    "init": f"{COUNT}if not self.is_initializing():\n    n.value += 1\nreturn nn.Dense(2)(x) + n.value",
    "a norm that trains and is then read": (
        "norm = nn.BatchNorm()\ny = norm(x, use_running_average=False)\n"
        "return norm(y * 2, use_running_average=True)"
    ),
    "a name of nnx.Module": 'return self.perturb("train", nn.Dense(2)(x))',
    "groups over other axes": "return nn.GroupNorm(2, reduction_axes=(-1,))(x)",
}
DECODING = {
    "attention": "return nn.SelfAttention(2, decode=True)(x)",
    "attention that is called twice": (
        "attention = nn.SelfAttention(2, decode=True)\nreturn attention(attention(x))"
    ),
}


def forms(body: str, length: int) -> dict[str, str]:
    return printed_alike(PROGRAM.format(body=textwrap.indent(body, " " * 8), length=length))


@pytest.mark.parametrize("body", EXPLICIT.values(), ids=EXPLICIT)
def test_calls_find_what_linens_do(body: str) -> None:
    assert forms(body, 2) == {"m.Net": "explicit"}


@pytest.mark.parametrize("body", DECODING.values(), ids=DECODING)
def test_caches_are_made_by_the_first_call(body: str) -> None:
    assert forms(body, 1) == {"m.Net": "explicit"}


def test_variables_read_before_all_are_made_keep_the_class_lazy() -> None:
    body = f"known = len(self.variables)\n{COUNT}return nn.Dense(2)(x) + known"
    assert forms(body, 2) == {"m.Net": "lazy"}
