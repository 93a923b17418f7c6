"""Recurrent policies: a scanned cell, its carry made by a method of the class, and the network around."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp


class Scanned(nn.Module):
    @functools.partial(
        nn.scan, variable_broadcast="params", in_axes=0, out_axes=0, split_rngs={"params": False}
    )
    @nn.compact
    def __call__(self, state, inputs):
        x, resets = inputs
        state = jnp.where(resets[:, None], FRESH, state)
        return nn.GRUCell(x.shape[1])(state, x)

    @staticmethod
    def start(batch, width):
        cell = nn.GRUCell(width)
        return cell.initialize_carry(jax.random.key(0), (batch, width))


class Policy(nn.Module):
    actions: int

    @nn.compact
    def __call__(self, state, inputs):
        x, resets = inputs
        state, x = Scanned()(state, (nn.relu(nn.Dense(6)(x)), resets))
        return state, nn.Dense(self.actions)(x)


def main():
    model, key = Policy(3), jax.random.key(1)
    state = Scanned.start(2, 6)
    inputs = jax.random.normal(key, (4, 2, 5)), jnp.arange(8).reshape(4, 2) % 3 == 0
    variables = model.init(key, state, inputs)
    print(jax.tree_util.tree_leaves_with_path((variables, model.apply(variables, state, inputs))))
"""


@pytest.mark.parametrize(
    "fresh", ["self.start(x.shape[0], x.shape[1])", "self.start(*x.shape)", "jnp.zeros_like(state)"]
)
def test_a_scanned_cell_and_the_network_around_it_are_explicit(fresh: str) -> None:
    forms = printed_alike(SOURCE.replace("FRESH", fresh))
    assert set(forms.values()) == {"explicit"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FRESH", "Scanned.start(x.shape[0], 6)"),
        (
            "x, resets = inputs\n        state = jnp",
            "x, resets = inputs\n        if x.ndim == 2:\n            self.start(2, 6)\n        state = jnp",
        ),
        ("in_axes=0", "in_axes=((0, 0),)"),
    ],
)
def test_what_is_not_proven_of_it_is_lazy(old: str, new: str) -> None:
    source = SOURCE.replace(old, new).replace("FRESH", "jnp.zeros_like(state)")
    forms = printed_alike(source)
    assert forms["m.Scanned"] == "lazy"
