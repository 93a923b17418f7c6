"""Loops over fields stay loops over fields, whatever else the call does."""

from __future__ import annotations

from nnx_migrate.model import Outcome
from tests.rewrite.projects import explicit_source as rewrite_source

SOURCE = """import flax.linen as nn


class Model(nn.Module):
    sizes: tuple

    @nn.compact
    def __call__(self, x):
        for size in {over}:
            x = nn.Dense(size)(x)
            self.sow("intermediates", "x", x)
        return x
"""


def test_a_loop_that_sows_still_runs_over_a_field() -> None:
    (found,) = rewrite_source(SOURCE.format(over="self.sizes")).classes
    assert (found.outcome, found.reason) == (Outcome.REWRITTEN, None)


def test_a_loop_over_an_argument_is_refused() -> None:
    (found,) = rewrite_source(SOURCE.format(over="x")).classes
    assert found.outcome is Outcome.REFUSED


def test_a_param_whose_initialiser_closes_over_the_input_gets_its_size() -> None:
    source = """import flax.linen as nn
import jax.numpy as jnp


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        width = x.shape[-1]
        token = self.param(name="token", init_fn=lambda key: jnp.zeros((1, width)))
        return x + token
"""
    result = rewrite_source(source)
    assert [(one.outcome, one.new_arguments) for one in result.classes] == [
        (Outcome.REWRITTEN, ("in_features",))
    ]
    assert "self.token = nnx.Param((lambda key: jnp.zeros((1, in_features)))(rngs.params()))" in (
        result.code
    )
