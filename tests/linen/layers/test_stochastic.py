"""Dropout."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from tests.linen.layers.comparison import assert_same_error, floats, pair


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ("0.5, deterministic=False", {}),
        ("0.5", {"deterministic": False}),
        ("0.5", {"deterministic": True}),
        ("0.0, deterministic=False", {}),
        ("1.0, deterministic=False", {}),
        ("0.3, (0, -1), deterministic=False", {}),
        ("0.5, deterministic=False, rng_collection='params'", {}),
        ("0.5, deterministic=False", {"rng": jax.random.key(3)}),
    ],
)
def test_dropout_is_the_same_program(fields, options):
    pair(f"stochastic.Dropout({fields})", floats(3, 4), **options).check_programs()


def test_dropout_drops_the_same_values():
    found = pair("stochastic.Dropout(0.5, deterministic=False)", floats(3, 4, dtype=jnp.bfloat16))
    found.check_programs()
    found.check_numbers()


def test_two_layers_and_two_calls_draw_keys_of_their_own():
    source = """
class Model(Module):
    def setup(self):
        self.drop = stochastic.Dropout(0.5, deterministic=False)
        self.other = stochastic.Dropout(0.5, deterministic=False)
    def __call__(self, x):
        return self.drop(x), self.drop(x), self.other(x)
"""
    _, (first, second, other) = pair("Model()", floats(5, 5), source=source).check_numbers()
    assert not (first == second).all()
    assert not (first == other).all()


@pytest.mark.parametrize(
    "expression",
    [
        "stochastic.Dropout(0.5).apply({}, jnp.ones(3))",
        "stochastic.Dropout(0.5, deterministic=True).apply({}, jnp.ones(3), deterministic=True)",
        "stochastic.Dropout(0.5, deterministic=False).apply({}, jnp.ones(3))",
    ],
)
def test_what_linen_refuses_is_refused(expression):
    assert_same_error(expression)
