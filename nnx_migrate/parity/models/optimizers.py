"""Optimizers of the built-in models."""

from __future__ import annotations

from typing import Any

import jax
import optax
from optax.contrib import muon, reduce_on_plateau

from nnx_migrate.parity.models.load import load

OPTIMIZERS = ("adamw", "muon", "plateau")
LEARNING_RATE = 1e-3


def build_optimizer(name: str, side: str, shard_mode: str) -> optax.GradientTransformation:
    """Return an optimizer of optax; Muon has the dimension numbers of one side (``deepseek.linen``).

    ``plateau`` is AdamW whose updates are halved at every step that does not halve the loss: what it
    does depends on the loss from the second step on.
    """
    if name == "adamw":
        return optax.adamw(LEARNING_RATE)
    if name == "plateau":
        plateau = reduce_on_plateau(factor=0.5, patience=1, rtol=0.5)
        return optax.chain(optax.adamw(LEARNING_RATE), plateau)
    numbers = load(f"{side}.muon").dimension_numbers
    optimizer = muon(LEARNING_RATE, muon_weight_dimension_numbers=numbers)
    return optimizer if shard_mode == "auto" else over_auto_axes(optimizer)


def over_auto_axes(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """The optimizer for Explicit axes, whose update leaves shardings within it to the compiler.

    Muon multiplies sharded matrices without saying how the products are sharded (optax 0.2.8).
    """

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        shardings = jax.tree.map(lambda array: jax.typeof(array).sharding, (updates, state))
        free = jax.sharding.auto_axes(optimizer.update, out_sharding=shardings)
        return free(updates, state, params)

    return optax.GradientTransformation(optimizer.init, update)
