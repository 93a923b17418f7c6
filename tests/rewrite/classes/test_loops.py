"""Loops over fields stay loops over fields, whatever else the call does."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Outcome
from tests.rewrite.classes.stepping import same_steps
from tests.rewrite.classes.support import refusal
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


TOGETHER = """
class M(nn.Module):
  depth: int = 2
  width: int = 3

  @nn.compact
  def __call__(self, x):
    m, n = 1, 2
    {together}
    for i in range(n):
      x = nn.relu(nn.Dense(self.width + i)(x))
    return nn.Dense(6)(x) + skip.sum()
"""


@pytest.mark.parametrize(
    "together",
    [
        "n, skip = self.depth, x",
        "(skip, n) = (x, self.depth)",
        "skip, n, k = x * 2, self.depth, x.shape",
    ],
)
def test_a_name_that_is_bound_beside_an_array_is_a_field_of_its_own(together: str) -> None:
    same_steps(TOGETHER.format(together=together), sizes={"in_features": 6})


@pytest.mark.parametrize(
    ("together", "reason"),
    [
        ("n, skip = self.depth, x.sum()", "in a loop over 'n'"),  # a call does what it does
        ("n, skip = self.depth, n * x", "in a loop over 'n'"),  # both at once
        ("n, *skip = self.depth, x, x", "in a loop over 'n'"),
        ("n, skip = x, self.depth * x", "in a loop over 'n'"),
        ("n, skip = pair = self.depth, x", "in a loop over 'n'"),
    ],
)
def test_names_that_may_hang_on_each_other_are_bound_together(together: str, reason: str) -> None:
    assert reason in refusal(TOGETHER.format(together=together)).reason
