"""Activations."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from tests.linen.layers.comparison import evaluate, floats, pair

PLAIN = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "normalize",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "standardize",
    "swish",
    "tanh",
]


@pytest.mark.parametrize("name", PLAIN)
def test_functions_are_jaxs(name):
    linen, lazy = evaluate(f"activation.{name}")
    assert linen is lazy


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("fields", ["", "negative_slope_init=0.3, param_dtype=jnp.bfloat16"])
def test_prelu_is_the_same_program_and_bits(fields, dtype):
    found = pair(f"activation.PReLU({fields})", floats(2, 5, dtype=dtype))
    found.check_programs()
    found.check_numbers()
