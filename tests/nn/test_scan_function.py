"""``nnm.scan`` of a function that gets its module, against ``linen.scan``."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm

from .oracle import array, check

SHARED = {"variable_broadcast": "params", "split_rngs": {"params": False}}
OPTIONS: dict[str, dict[str, Any]] = {
    "time": SHARED,
    "axes": {**SHARED, "in_axes": 1, "out_axes": -1},
    "reversed and unrolled": {**SHARED, "reverse": True, "unroll": 2},
}


def step(module: Any, carry: Any, x: Any) -> Any:
    h = module(jnp.concatenate([carry, x], -1))
    return carry + h, (h * 2, None)


class LinenSteps(linen.Module):
    options: Any
    body: Any = step

    @linen.compact
    def __call__(self, carry: Any, xs: Any) -> Any:
        cell = LinenCell("batch_stats" in self.options.values(), name="cell")
        return linen.scan(self.body, **self.options)(cell, carry, xs)


class LinenCell(linen.Module):
    norm: bool

    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = linen.Dense(4)(x)
        return linen.BatchNorm(use_running_average=False)(x) if self.norm else x


class Cell(nnx.Module):
    def __init__(self, norm: bool, *, rngs: nnx.Rngs) -> None:
        self.norm = norm
        self.Dense_0 = nnx.Linear(6, 4, rngs=rngs)
        if norm:
            self.BatchNorm_0 = nnm.BatchNorm(use_running_average=False, in_features=4, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = self.Dense_0(x)
        return self.BatchNorm_0(x) if self.norm else x


class Steps(nnx.Module):
    def __init__(self, options: Any, body: Any = step, *, rngs: nnx.Rngs) -> None:
        self.options, self.body = nnx.static(options), body
        self.cell = Cell("batch_stats" in options.values(), rngs=rngs)

    def __call__(self, carry: Any, xs: Any) -> Any:
        return nnm.scan(self.body, **self.options)(self.cell, carry, xs)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_values_gradients_and_program_are_linens(options: dict[str, Any]) -> None:
    xs = array(3, 5, 2) if options.get("in_axes") else array(5, 3, 2)
    check(LinenSteps(options), lambda rngs: Steps(options, rngs=rngs), array(3, 4), xs)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_same_seed_gives_linens_parameters(options: dict[str, Any]) -> None:
    xs = array(3, 5, 2) if options.get("in_axes") else array(5, 3, 2)
    old = LinenSteps(options).init(jax.random.key(3), array(3, 4), xs)
    new = nnm.variables_of(nnm.build(Steps, options, rngs=jax.random.key(3)))
    assert jax.tree.structure(old) == jax.tree.structure(new)
    for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
        assert bool((one == other).all())


def test_a_function_without_a_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected a scanned function to get an nnx\.Module"):
        nnm.scan(lambda carry, x: (carry, x))(0, jnp.ones(3), jnp.ones(3))


@pytest.mark.parametrize("target", [3, linen.Dense, dict])
def test_what_is_no_module_class_and_no_function_is_refused(target: Any) -> None:
    with pytest.raises(TypeError, match=r"expected scan to get an nnx\.Module class or function"):
        nnm.scan(target)


CARRIED = {**SHARED, "variable_carry": "batch_stats"}


def test_statistics_that_the_steps_hand_on_are_linens() -> None:
    carry, xs = array(3, 4), array(5, 3, 2)
    model = Steps(CARRIED, rngs=nnx.Rngs(0))
    variables = nnm.variables_of(model)
    old, updates = LinenSteps(CARRIED).apply(variables, carry, xs, mutable=["batch_stats"])
    new = model(carry, xs)
    expected, found = updates["batch_stats"], nnm.variables_of(model)["batch_stats"]
    assert jax.tree.structure((old, expected)) == jax.tree.structure((new, found))
    for one, other in zip(
        jax.tree.leaves((old, expected)), jax.tree.leaves((new, found)), strict=True
    ):
        assert jnp.allclose(one, other, rtol=1e-6)
    assert float(jnp.abs(found["cell"]["BatchNorm_0"]["mean"]).sum()) > 0


def test_a_variable_that_the_body_changes_must_be_handed_on() -> None:
    model = Steps({**SHARED, "variable_broadcast": ("params", "batch_stats")}, rngs=nnx.Rngs(0))
    model.cell = Cell(norm=True, rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match="which all steps share: name its collection"):
        model(array(3, 4), array(5, 3, 2))


@pytest.mark.parametrize(
    "lift",
    [
        lambda: nnm.scan(step, variable_axes={"params": 0}),
        lambda: nnm.vmap(step, variable_axes={"params": 0}),
    ],
)
def test_a_function_that_would_stack_variables_is_refused(lift: Any) -> None:
    with pytest.raises(ValueError, match="of a function to stack no variables"):
        lift()
