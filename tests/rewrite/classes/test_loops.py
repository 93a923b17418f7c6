"""Loops over fields stay loops over fields, whatever else the call does."""

from __future__ import annotations

from nnx_migrate.model import Outcome
from nnx_migrate.rewrite.single import rewrite_source

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
