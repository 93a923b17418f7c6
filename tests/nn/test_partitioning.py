"""Logical axis names stay with the variable and change nothing else."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from nnx_migrate import nn as nnm

INIT = nnx.initializers.lecun_normal()
NAMES = ("embed", "mlp")


def _layer(kind: str, init: Any) -> Any:
    rngs = nnx.Rngs(0)
    match kind:
        case "Linear":
            return nnx.Linear(4, 6, kernel_init=init, rngs=rngs)
        case "LinearGeneral":
            return nnx.LinearGeneral(4, (2, 3), kernel_init=init, rngs=rngs)
        case "Conv":
            return nnx.Conv(4, 6, 3, kernel_init=init, rngs=rngs)
        case "attention":
            return nnm.MultiHeadDotProductAttention(2, kernel_init=init, in_features=4, rngs=rngs)
        case _:
            return nnm.LSTMCell(4, kernel_init=init, in_features=4, rngs=rngs)


@pytest.mark.parametrize("kind", ["Linear", "LinearGeneral", "Conv", "attention", "LSTMCell"])
def test_values_are_those_of_the_plain_initialiser(kind: str) -> None:
    plain, named = (
        nnx.state(_layer(kind, init), nnx.Param)
        for init in (INIT, nnm.with_logical_partitioning(INIT, NAMES))
    )
    assert bool(
        jax.tree.all(
            jax.tree.map(lambda a, b: bool((a == b).all()), *map(nnx.to_pure_dict, (plain, named)))
        )
    )
    kernels = [v for path, v in nnx.to_flat_state(named) if v.get_metadata().get("logical_axes")]
    assert kernels
    assert all(v.get_metadata()["logical_axes"] == NAMES for v in kernels)


def test_rules_are_kept_too_and_absent_ones_leave_no_metadata() -> None:
    init = nnm.with_logical_partitioning(INIT, list(NAMES), rules=[["embed", "data"]])  # type: ignore[list-item]
    metadata = nnx.Param(init(jax.random.key(0), (2, 2))).get_metadata()
    assert metadata["logical_axis_rules"] == (("embed", "data"),)
    assert "logical_mesh" not in metadata


def test_construction_needs_no_mesh_and_constrains_nothing() -> None:
    init = nnm.with_logical_partitioning(INIT, NAMES)
    graphdef, state = nnx.split(nnx.Linear(4, 6, kernel_init=init, rngs=nnx.Rngs(0)))
    text = jax.jit(lambda s, x: nnx.merge(graphdef, s, copy=True)(x)).lower(state, jnp.ones((1, 4)))
    assert "sharding" not in text.as_text().lower()
