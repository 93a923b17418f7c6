"""Streams that a lift does not name stay outside of it: Linen draws from ``params`` instead."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Noisy(nn.Module):
    @nn.compact
    def __call__(self, x):
        start = lambda: jax.random.normal(self.make_rng("noise"), (1, 4))
        return x + self.variable("state", "first", start).value


class Step(nn.Module):
    @nn.compact
    def __call__(self, c, _):
        return Noisy()(nn.Dense(4)(c)), None


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        {call}


def main():
    x = jnp.ones((3, 4))
    keys = {{"params": jax.random.key(0), "noise": jax.random.key(1)}}
    for rngs in (keys, keys["params"]):
        print(jax.jit(Net().init)(rngs, x))
"""
STACKED = 'variable_axes={"params": 0, "state": 0}'
CALLS = {
    "scan": f"return nn.scan(Step, {STACKED}, split_rngs={{SPLITS}}, length=2)()(x, None)[0]",
    "vmap": f"return nn.vmap(Noisy, {STACKED}, split_rngs={{SPLITS}}, in_axes=None, axis_size=2)()(x)",
}


@pytest.mark.parametrize("splits", ['{"params": True}', '{"params": True, "noise": False}'])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_variables_start_where_linens_do(call: str, splits: str) -> None:
    forms = printed_alike(SOURCE.format(call=call.replace("{SPLITS}", splits)))
    assert {*forms.values()} == {"explicit"}
