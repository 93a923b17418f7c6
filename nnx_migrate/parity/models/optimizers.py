"""Optimizers of the built-in models."""

from __future__ import annotations

from typing import Any

import jax
import optax
from optax.contrib import muon

from nnx_migrate.parity.models.load import load

OPTIMIZERS = ("adamw", "muon")
LEARNING_RATE = 1e-3


def build_optimizer(name: str, side: str, shard_mode: str) -> optax.GradientTransformation:
    """Return optax's AdamW, or its Muon with the dimension numbers of one side (``deepseek.linen``)."""
    if name == "adamw":
        return optax.adamw(LEARNING_RATE)
    numbers = load(f"{side}.muon").dimension_numbers
    chosen = muon(LEARNING_RATE, muon_weight_dimension_numbers=numbers)
    return chosen if shard_mode == "auto" else over_auto_axes(chosen)


def over_auto_axes(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """The optimizer for Explicit axes, whose update leaves shardings within it to the compiler.

    Muon multiplies sharded matrices without saying how the products are sharded (optax 0.2.8).
    """

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        shardings = jax.tree.map(lambda array: jax.typeof(array).sharding, (updates, state))
        free = jax.sharding.auto_axes(optimizer.update, out_sharding=shardings)
        return free(updates, state, params)

    return optax.GradientTransformation(optimizer.init, update)
