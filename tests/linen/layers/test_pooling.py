"""Pooling."""

from __future__ import annotations

import pytest

from tests.linen.layers.comparison import assert_same_error, assert_same_text, evaluate, floats


@pytest.mark.parametrize(
    "call",
    [
        "avg_pool(x, (2, 2))",
        "avg_pool(x, (2, 3), strides=(2, 1), padding='SAME')",
        "avg_pool(x, (2, 2), padding=((1, 0), (1, 1)), count_include_pad=False)",
        "avg_pool(x[0], (2, 2), padding='SAME', count_include_pad=False)",
        "max_pool(x, (2, 2), (2, 2))",
        "max_pool(x[0], (2, 2), padding='SAME')",
        "max_pool(x, (2, 2), padding=[(1, 1), (0, 0)])",
        "max_pool(x[None], (2, 2))",
        "min_pool(x, (3, 1))",
        "pool(x, 1.0, jax.lax.mul, (2, 2), None, 'VALID')",
    ],
)
def test_pooling_is_the_same_program(call):
    assert_same_text(*evaluate(f"lambda x: pooling.{call}"), floats(2, 5, 6, 3))


@pytest.mark.parametrize(
    "call",
    [
        "max_pool(jnp.ones((2, 5, 6, 3)), (2, 2), (1,))",
        "max_pool(jnp.ones((2, 5, 6, 3)), (2, 2), padding=((1, 1),))",
        "max_pool(jnp.ones((2, 5, 6, 3)), (2, 2), padding=((1,), (1,)))",
    ],
)
def test_what_linen_refuses_is_refused(call):
    assert_same_error(f"pooling.{call}")
