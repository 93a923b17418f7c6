"""Plain calls that draw Linen's keys."""

from __future__ import annotations

from typing import Any

import flax.errors
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm


class Net(nnx.Module):
    """Statistics, and keys of two streams."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.norm = nnx.BatchNorm(3, rngs=rngs)
        self.drop = nnm.Dropout(0.5, rngs=rngs)
        self.noise_rng = nnm.stream(rngs, "noise")

    def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
        x = self.norm(x, use_running_average=not train)
        x = self.drop(x, deterministic=not train)
        return x + jax.random.normal(self.noise_rng(), x.shape)

    def halved(self, x: jax.Array) -> jax.Array:
        return self(x) / 2


X = jnp.linspace(0.0, 1.0, 12).reshape(4, 3)
KEYS = {"dropout": jax.random.key(1), "noise": jax.random.key(2)}


def built() -> Net:
    return nnm.build(Net, rngs=jax.random.key(0))


@pytest.mark.parametrize("method", [None, "halved", Net.halved])
def test_the_keys_and_statistics_are_those_of_apply(method: Any) -> None:
    model = built()
    expected, changed = nnm.apply(
        model, nnm.variables_of(model), X, rngs=KEYS, method=method, mutable=["batch_stats"]
    )
    found = nnm.call(model, X, rngs=KEYS, method=method)
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    held = nnm.variables_of(model)["batch_stats"]
    assert np.any(np.asarray(held["norm"]["mean"]) != 0)
    jax.tree.map(np.testing.assert_array_equal, held, changed["batch_stats"])


def test_every_call_draws_from_the_keys_that_it_is_given() -> None:
    model = built()
    first = nnm.call(model, X, rngs=KEYS)
    model.norm.mean[...], model.norm.var[...] = jnp.zeros(3), jnp.ones(3)
    np.testing.assert_array_equal(first, nnm.call(model, X, rngs=KEYS))


@pytest.mark.parametrize("rngs", [KEYS, {"dropout": jax.random.key(1)}])
def test_the_module_has_its_own_streams_back(rngs: dict[str, jax.Array]) -> None:
    model, untouched = built(), built()
    if len(rngs) == 1:
        with pytest.raises(flax.errors.InvalidRngError, match="noise"):
            nnm.call(model, X, rngs=rngs)
    else:
        nnm.call(model, X, rngs=rngs)
    assert nnx.graphdef(model) == nnx.graphdef(untouched)
    keys = nnx.state(model, nnx.RngCount), nnx.state(untouched, nnx.RngCount)
    assert jax.tree.leaves(keys[0]) == jax.tree.leaves(keys[1])


def test_a_compiled_step_is_compiled_once() -> None:
    model = built()
    traced: list[None] = []

    @nnx.jit
    def step(model: Net, key: jax.Array) -> jax.Array:
        traced.append(None)
        return jnp.asarray(nnm.call(model, X, rngs={"params": key}))

    outputs = [step(model, jax.random.key(i)) for i in range(3)]
    assert len(traced) == 1
    assert not np.array_equal(outputs[0], outputs[1])
