"""Optimizers of the built-in models."""

from __future__ import annotations

from typing import Any

import optax
from optax.contrib import muon

from nnx_migrate.parity.models.load import load

OPTIMIZERS = ("adamw", "muon")
LEARNING_RATE = 1e-3


def build_optimizer(name: str, family: str) -> Any:
    """Return optax's AdamW, or its Muon with the dimension numbers of a model family's arrays."""
    if name == "adamw":
        return optax.adamw(LEARNING_RATE)
    numbers = load(f"{family}.muon").dimension_numbers
    return muon(LEARNING_RATE, muon_weight_dimension_numbers=numbers)
