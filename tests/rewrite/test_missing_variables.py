"""Calls that lack variables raise Linen's errors, wherever in the model that shows."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax
import flax.linen as nn
import jax
import jax.numpy as jnp


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.BatchNorm(use_running_average=True)(nn.Dense(3)(x))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return HEAD(2, name="head")(Encoder(name="encoder")(x))


def attempt(variables, x):
    try:
        return Net().apply(variables, x).shape
    except flax.errors.FlaxError as error:
        return type(error).__name__


def main():
    x = jnp.ones((2, 4))
    made = Net().init(jax.random.key(0), x)
    params, stats = made["params"], made["batch_stats"]
    print(attempt(made, x))
    print(attempt({"params": {"head": params["head"]}, "batch_stats": stats}, x))
    print(attempt({"params": {"encoder": params["encoder"]}, "batch_stats": stats}, x))
    print(attempt({"params": params}, x))
    print(attempt({"params": params, "batch_stats": {"other": stats["encoder"]}}, x))
    print(attempt({"batch_stats": stats}, x))
"""


@pytest.mark.parametrize(("head", "form"), [("nn.Dense", "explicit"), ("nn.jit(nn.Dense)", "lazy")])
def test_the_error_is_linens(head: str, form: str) -> None:
    forms = printed_alike(SOURCE.replace("HEAD", head))
    assert forms == {"m.Encoder": "explicit", "m.Net": form}
