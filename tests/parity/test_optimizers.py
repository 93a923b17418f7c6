"""Optimizers whose update takes more than gradients: both sides hand it the loss and the gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from nnx_migrate.parity import ParityCase, check
from nnx_migrate.parity.evaluation.results import SideResult
from nnx_migrate.parity.models.optimizers import build_optimizer
from nnx_migrate.parity.sides.linen import evaluate_linen
from nnx_migrate.parity.sides.nnx import evaluate_nnx

X = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)


class Migrated(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.kernel = nnx.Param(nnx.initializers.normal(1.0)(rngs.params(), (6, 3)))

    def __call__(self, x: Any) -> Any:
        return x @ self.kernel[...]


class Linen(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return x @ self.param("kernel", nn.initializers.normal(1.0), (6, 3))


def by_the_loss() -> optax.GradientTransformationExtraArgs:
    """Updates that are made of what is handed on by name alone."""

    def update(
        updates: Any, state: Any, params: Any = None, *, value: Any, grad: Any, **others: Any
    ) -> Any:
        assert not others
        return jax.tree.map(lambda one: -value * one, grad), state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)


def case_of(**changes: Any) -> ParityCase:
    given = {"linen": Linen(), "nnx": lambda rngs: Migrated(rngs=rngs), "inputs": (X,)}
    return ParityCase(**{**given, "steps": 1, "keeps_state": True, **changes})


@pytest.mark.parametrize("evaluate", [evaluate_linen, evaluate_nnx])
def test_an_update_gets_the_loss_and_the_gradients(evaluate: Callable[..., SideResult]) -> None:
    found, still, moved = (
        evaluate(case_of(optimizer=optimizer))
        for optimizer in (by_the_loss(), optax.sgd(0.0), optax.sgd(1.0))
    )
    before, after = (one.state["params/kernel"] for one in (still, moved))
    expected = before + found.losses["step 1"] * (after - before)
    np.testing.assert_allclose(found.state["params/kernel"], expected, rtol=1e-4)


def test_an_optimizer_that_takes_the_loss_is_the_same_on_both_sides() -> None:
    report = check(case_of(optimizer=by_the_loss(), steps=3))
    assert report.verdict in ("identical", "equal_by_rules")
    assert report.check("losses_over_steps").leaves == 3


def test_plateau_halves_the_second_step() -> None:
    losses = jnp.asarray([1.0, 0.9]), jnp.asarray([1.0, 0.4])
    steps = []
    for first, second in losses:
        optimizer = build_optimizer("plateau", "gqa.linen", "auto")
        params = {"x": jnp.ones(2)}
        state = optimizer.init(params)
        told = optax.with_extra_args_support(optimizer)
        _, state = told.update(params, state, params, value=first)
        updates, _ = told.update(params, state, params, value=second)
        steps.append(updates["x"])
    np.testing.assert_allclose(steps[0], 0.5 * steps[1])
