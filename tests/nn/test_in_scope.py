"""A submodule whose variables are attributes of the module that holds it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm

X = jnp.arange(6.0).reshape(2, 3)


class Inner(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.width = 4
        self.mix = nnx.Linear(3, 4, rngs=rngs)
        self.seen = nnx.BatchStat(jnp.zeros(()))

    def __call__(self, x: Any) -> Any:
        self.seen[...] += 1
        return self.mix(x)


class Outer(nnx.Module):
    inner = nnm.InScope()

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.inner = Inner(rngs)
        self.gain = nnx.Param(jnp.ones((1, 4)))

    def __call__(self, x: Any) -> Any:
        return self.inner(x) * self.gain[...]


def test_its_variables_are_listed_at_the_path_of_the_holder() -> None:
    model = {"outer": Outer(nnx.Rngs(0))}
    paths = [path for path, _ in nnx.to_flat_state(nnx.state(model))]
    assert paths == [
        ("outer", "gain"),
        ("outer", "mix", "bias"),
        ("outer", "mix", "kernel"),
        ("outer", "seen"),
    ]


def test_what_a_call_changes_is_seen_by_both_after_split_and_merge() -> None:
    model = nnx.merge(*nnx.split(Outer(nnx.Rngs(0))))

    @nnx.jit
    def step(model: Outer, x: Any) -> Any:
        return model(x)

    alone = nnx.jit(lambda mix, x: mix(x))(model.mix, X)
    np.testing.assert_allclose(step(model, X), alone, rtol=1e-6, atol=1e-6)  # fused otherwise
    assert model.seen[...] == model.inner.seen[...] == 1


def test_an_optimizer_updates_what_the_submodule_reads() -> None:
    model = Outer(nnx.Rngs(0))
    slopes = nnx.grad(lambda model: model(X).sum())(model)
    nnx.update(model, jax.tree.map(lambda one: 0 * one, slopes))
    assert not model(X).any()


def test_a_name_that_both_have_is_an_error() -> None:
    class Clash(nnx.Module):
        inner = nnm.InScope()

        def __init__(self) -> None:
            self.width, self.mix = 4, 3
            self.inner = Inner(nnx.Rngs(0))

    with pytest.raises(ValueError, match="no attribute 'mix'"):
        Clash()


def test_a_method_of_the_name_is_an_error() -> None:
    class Clash(nnx.Module):
        inner = nnm.InScope()

        def mix(self) -> None: ...

    with pytest.raises(ValueError, match="no attribute 'mix'"):
        Clash().inner = Inner(nnx.Rngs(0))


def test_a_variable_set_later_under_the_name_is_an_error_when_the_submodule_is_read() -> None:
    model = Outer(nnx.Rngs(0))
    model.seen = nnx.BatchStat(jnp.ones(()))
    with pytest.raises(ValueError, match=r"expected Outer\.seen to be that of its 'inner'"):
        model(X)


def test_a_submodule_that_draws_is_an_error() -> None:
    class Noisy(nnx.Module):
        def __init__(self) -> None:
            self.noise_rng = nnx.Rngs(0).noise.fork()

    with pytest.raises(ValueError, match="draws from 'noise_rng'"):
        Outer(nnx.Rngs(0)).inner = Noisy()


def test_one_that_is_not_built_is_no_attribute() -> None:
    class Empty(nnx.Module):
        inner = nnm.InScope()

    assert not hasattr(Empty(), "inner")
