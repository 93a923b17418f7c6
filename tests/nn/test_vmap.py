"""``nnm.vmap`` of a class against ``linen.vmap``: ensembles, shared parameters, axes, programs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm

from .oracle import array, check

N = 3


class LinenCritic(linen.Module):
    @linen.compact
    def __call__(self, x: Any, action: Any) -> Any:
        h = jax.nn.relu(linen.Dense(5)(x))
        h = linen.Dropout(0.4, deterministic=True)(h)
        return linen.Dense(1)(jnp.concatenate([h, action], -1)), h.mean(-1)


class Critic(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(4, 5, rngs=rngs)
        self.Dropout_0 = nnm.Dropout(0.4, deterministic=True, rngs=rngs)
        self.Dense_1 = nnx.Linear(7, 1, rngs=rngs)

    def __call__(self, x: Any, action: Any) -> Any:
        h = jax.nn.relu(self.Dense_0(x))
        h = self.Dropout_0(h)
        return self.Dense_1(jnp.concatenate([h, action], -1)), h.mean(-1)


LinenCritic.__name__ = "Critic"


class LinenEnsemble(linen.Module):
    options: Any

    @linen.compact
    def __call__(self, x: Any, action: Any) -> Any:
        return linen.vmap(LinenCritic, **self.options)()(x, action)


class Ensemble(nnx.Module):
    def __init__(self, options: Any, *, rngs: nnx.Rngs) -> None:
        self.VmapCritic_0 = nnm.vmap(Critic, **options)(rngs=rngs)

    def __call__(self, x: Any, action: Any) -> Any:
        return self.VmapCritic_0(x, action)


SPLIT: dict[str, Any] = {
    "variable_axes": {"params": 0},
    "split_rngs": {"params": True, "dropout": True},
    "axis_size": N,
}
SHARED: dict[str, Any] = {"variable_axes": {"params": None}, "split_rngs": {"params": False}}
X, ACTION = (2, 4), (2, 2)
CASES: dict[str, tuple[dict[str, Any], tuple[int, ...], tuple[int, ...]]] = {
    "ensemble": ({**SPLIT, "in_axes": None}, X, ACTION),
    "members by inputs": ({**SPLIT, "in_axes": (None, 1), "out_axes": 1}, X, (2, N, 2)),
    "parameters along another axis": (
        {**SPLIT, "in_axes": None, "variable_axes": {"params": -1}, "out_axes": (0, -1)},
        X,
        ACTION,
    ),
    "shared parameters": ({**SHARED, "in_axes": (1, 0), "out_axes": 1}, (2, N, 4), (N, 2, 2)),
}


@pytest.mark.parametrize(("options", "x", "action"), CASES.values(), ids=CASES)
def test_values_gradients_and_program_are_linens(
    options: dict[str, Any], x: tuple[int, ...], action: tuple[int, ...]
) -> None:
    inputs = array(*x), array(*action, seed=2)
    check(LinenEnsemble(options), lambda rngs: Ensemble(options, rngs=rngs), *inputs)


@pytest.mark.parametrize(("options", "x", "action"), CASES.values(), ids=CASES)
def test_the_same_seed_gives_linens_parameters(
    options: dict[str, Any], x: tuple[int, ...], action: tuple[int, ...]
) -> None:
    inputs = array(*x), array(*action, seed=2)
    old = jax.jit(LinenEnsemble(options).init)(jax.random.key(3), *inputs)
    make = jax.jit(lambda key: nnm.variables_of(nnm.build(Ensemble, options, rngs=key)))
    new = make(jax.random.key(3))
    assert jax.tree.structure(old) == jax.tree.structure(new)
    for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
        assert bool((one == other).all())


def test_state_is_updated_in_every_lane_and_streams_differ() -> None:
    class Counter(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.seen = nnx.BatchStat(jnp.zeros(()))
            self.noise = nnm.stream(rngs, "noise")

        def __call__(self, x: Any) -> Any:
            self.seen.set_value(self.seen[...] + x)
            return jax.random.uniform(self.noise())

    options = {"variable_axes": {"batch_stats": 0}, "split_rngs": {"noise": True}, "axis_size": N}
    counters = nnm.vmap(Counter, **options)(rngs=nnx.Rngs(noise=0))
    first, second = (counters(jnp.arange(3.0)).tolist() for _ in range(2))
    assert counters.seen[...].tolist() == [0, 2, 4]
    assert len({*first, *second}) == 2 * N


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variable_axes": {"params": 0}}, "expected the number of layers as length="),
        ({}, "which the loop does not lift"),
        ({"variable_axes": {"params": None}, "in_axes": 0}, "expected one size to map over"),
    ],
)
def test_what_linen_would_reject_is_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ensemble(options, rngs=nnx.Rngs(0))(array(*X), array(3, 2))


def test_modules_and_positional_streams_are_rejected() -> None:
    for handed in (nnx.Linear(2, 2, rngs=nnx.Rngs(0)), nnx.Rngs(0)):
        with pytest.raises(TypeError, match="expected a lifted class to build all its submodules"):
            nnm.vmap(Critic, **SPLIT)(handed)


def test_what_is_no_module_class_or_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected vmap to get an nnx\.Module class or function"):
        nnm.vmap(int)


def test_a_function_shares_its_module_between_the_lanes() -> None:
    layer = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    options = {"variable_axes": {"params": None}, "split_rngs": {"params": False}}
    mapped = nnm.vmap(lambda layer, x, y: layer(x) * y, **options, in_axes=(1, None), out_axes=-1)
    x = array(4, 5, 3)
    found = mapped(layer, x, 2.0)
    assert found.shape == (4, 2, 5)
    assert bool(jnp.allclose(found, jnp.moveaxis(layer(x) * 2.0, 1, -1)))


def test_a_function_needs_its_module() -> None:
    with pytest.raises(TypeError, match=r"expected a mapped function to get an nnx\.Module"):
        nnm.vmap(lambda m, x: x)(3, array(2, 2))
