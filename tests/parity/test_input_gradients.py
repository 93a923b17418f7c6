"""Gradients of the loss by the inputs: what parameters that get theirs do not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from nnx_migrate.parity import ParityCase, check
from nnx_migrate.parity.sides.nnx import evaluate_nnx

X = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
Change = Callable[[jax.Array], jax.Array]


class LinenNet(nn.Module):
    before: Change = staticmethod(lambda x: x)

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        return nn.Dense(4, name="up")(self.before(x) if train else x)


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, before: Change, in_evaluation: bool):
        self.up = nnx.Linear(3, 4, rngs=rngs)
        self.before = before
        self.in_evaluation = in_evaluation

    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        return self.up(self.before(x) if train or self.in_evaluation else x)


def report(
    before: Change, linen: Change = lambda x: x, in_evaluation: bool = True, **options: Any
) -> Any:
    given = {"inputs": (X,), **options}
    return check(
        ParityCase(
            linen=LinenNet(linen), nnx=lambda rngs: Net(rngs, before, in_evaluation), **given
        )
    )


def of_gradients(found: Any) -> tuple[str, tuple[str, ...]]:
    checked = found.check("gradients")
    return checked.status, checked.details


def test_equal_gradients_of_inputs_are_counted_with_those_of_parameters():
    found = report(lambda x: x, kwargs={"train": True})
    assert found.verdict == "identical"
    assert found.check("gradients").leaves == 2 * 3  # bias, kernel and input, in both modes


def test_a_gradient_that_the_inputs_no_longer_get_fails():
    status, details = of_gradients(report(jax.lax.stop_gradient))
    assert status == "fail"
    assert any(line.startswith("inputs/0: 6 of 6 elements differ") for line in details)


def test_a_gradient_that_is_stopped_in_the_other_mode_only_fails():
    status, details = of_gradients(report(jax.lax.stop_gradient, in_evaluation=False))
    assert status == "fail"
    assert details[0].startswith("with train=True: inputs/0: 6 of 6 elements differ")


def test_inputs_of_integers_have_no_gradients():
    ones = np.ones((2, 3), np.int32)
    found = report(lambda x: x, inputs=(ones,))
    assert (found.verdict, found.check("gradients").leaves) == ("identical", 4)
    assert not any("inputs" in line for line in found.not_checked)


def test_inputs_that_no_gradient_reaches_on_either_side_are_no_fault():
    stopped = jax.lax.stop_gradient
    found = report(stopped, stopped, in_evaluation=False, kwargs={"train": True})
    assert found.verdict == "identical"


def looped(x: jax.Array) -> jax.Array:
    """Not differentiable by its input: the number of rounds is not known."""
    return jax.lax.while_loop(lambda x: jnp.all(x < 100), lambda x: x * x + 1, x)


def test_gradients_that_linen_itself_cannot_take_are_named():
    found = report(looped, looped, in_evaluation=False, kwargs={"train": True})
    assert found.verdict == "identical"
    lines = [line for line in found.not_checked if line.startswith("gradients with respect to")]
    assert len(lines) == 1
    assert lines[0].startswith("gradients with respect to inputs: Linen itself cannot: ")


def test_gradients_that_only_nnx_cannot_take_fail():
    status, details = of_gradients(report(lambda x: x + 0 * looped(x), kwargs={"train": True}))
    assert status == "fail"
    assert details[0].startswith("of inputs: NNX: ")


def test_inputs_have_the_precision_that_what_builds_the_model_enables():
    """As a package does that enables double precision when it is imported."""

    def build(rngs: nnx.Rngs) -> Net:
        jax.config.update("jax_enable_x64", True)
        return Net(rngs, lambda x: x, in_evaluation=False)

    inputs = (X.astype(np.float64),)
    try:
        side = evaluate_nnx(ParityCase(linen=LinenNet(), nnx=build, inputs=inputs))
    finally:
        jax.config.update("jax_enable_x64", False)
    assert side.first.input_gradients["inputs/0"].dtype == np.float64
