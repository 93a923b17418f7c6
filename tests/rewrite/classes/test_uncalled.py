"""Layers that a compact method builds and never calls have no parameters in Linen."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from tests.rewrite.classes.support import converted, loaded, refusal

CELL = """\
class M(nn.Module):
  sizes: tuple = (4, 4)

  @nn.compact
  def __call__(self, x):
    {body}
    return x
"""
CARRY = "initialize_carry(jax.random.key(0), x.shape)"
LOOP = f"""\
for _ in range(2):
      carry = nn.LSTMCell(4).{CARRY}
      carry, x = nn.LSTMCell(4)(carry, x)"""


@pytest.mark.parametrize(
    "body",
    [
        f"carry, x = nn.LSTMCell(4)(nn.LSTMCell(4).{CARRY}, x)",
        f"carry = nn.GRUCell(4).{CARRY}\n    carry, x = nn.GRUCell(4)(carry, x)",
        f"carry = nn.LSTMCell(4, parent=None).{CARRY}\n    carry, x = nn.LSTMCell(4)(carry, x)",
        f"carry = nn.LSTMCell(4, name='a').{CARRY}\n    carry, x = nn.LSTMCell(4)(carry, x)",
        LOOP,
        f"for _ in range(2):\n      x = x + nn.LSTMCell(4).{CARRY}[0]\n    x = nn.Dense(4)(x)",
    ],
)
def test_a_cell_that_is_built_for_its_carry_counts_and_is_not_built(body: str) -> None:
    source, x = CELL.format(body=body), jnp.ones((2, 4))
    with (
        loaded(source, "carry_before") as before,
        loaded(converted(source), "carry_after") as after,
    ):
        variables = before.M().init(jax.random.key(0), x)
        text = converted(source)
        wanted = ("in_features", "x_features", "input_x_features")
        sizes = {name: 4 for name in wanted if f" {name}: int," in text}
        made = nnm.build(after.M, **sizes, rngs=jax.random.key(0))
        found = nnm.variables_of(made)
        assert jax.tree.map(jnp.shape, found) == jax.tree.map(jnp.shape, dict(variables))
        np.testing.assert_array_equal(nnm.apply(made, variables, x), before.M().apply(variables, x))


@pytest.mark.parametrize(
    "body",
    [
        f"cell = nn.LSTMCell(4)\n    carry = cell.{CARRY}",
        "dense = nn.Dense(4)\n    x = x * dense.features",
        "dense = nn.Dense(4)",
    ],
)
def test_a_layer_that_is_only_asked_is_refused(body: str) -> None:
    assert "it is never called" in refusal(CELL.format(body=body)).reason


def test_a_layer_whose_call_is_handed_on_is_called() -> None:
    body = "dense = nn.Dense(4)\n    x = jax.checkpoint(dense.__call__)(x)"
    assert "it is never called" not in converted(CELL.format(body=body))


def test_a_cell_for_a_carry_among_cells_without_numbers_is_refused() -> None:
    body = f"""\
for size in self.sizes:
      if size > 3:
        carry = nn.LSTMCell(size).{CARRY}
        carry, x = nn.LSTMCell(size)(carry, x)"""
    assert "it is never called" in refusal(CELL.format(body=body)).reason
