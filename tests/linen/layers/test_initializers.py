"""Initialisers."""

from __future__ import annotations

import pytest

from tests.linen.layers.comparison import evaluate

NAMES = [
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
    "ones_init()",
    "zeros_init()",
]


@pytest.mark.parametrize("name", NAMES)
def test_initialisers_are_jaxs(name):
    linen, lazy = evaluate(f"initializers.{name}")
    assert linen is lazy
