"""Linen modules behind ``ToNNX`` get their variables; what was there before stays as it was."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm

X = jnp.arange(12.0).reshape(3, 4)


class Model(nnx.Module):
    """A converted class that normalises what a class that stayed Linen gives."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.bridged = nnx.bridge.ToNNX(nn.Dense(2), rngs=rngs)
        self.norm = nnx.BatchNorm(2, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.dropout(self.norm(self.bridged(x)))

    def encode(self, x: jax.Array) -> jax.Array:
        return self.norm(self.bridged(x))


def test_the_bridged_module_has_variables_and_runs() -> None:
    model = Model(rngs=nnx.Rngs(0))
    assert nnm.lazy_init(model, X) is model
    assert model.bridged.kernel.shape == (4, 2)
    assert model(X).shape == (3, 2)


def test_running_statistics_stay_where_the_constructor_put_them() -> None:
    stock, model = Model(rngs=nnx.Rngs(0)), Model(rngs=nnx.Rngs(0))
    nnx.bridge.lazy_init(stock, X)
    nnm.lazy_init(model, X)
    assert np.any(stock.norm.mean[...] != 0)  # what this function is there for
    np.testing.assert_array_equal(model.norm.mean[...], np.zeros(2))
    np.testing.assert_array_equal(model.norm.var[...], np.ones(2))


def test_the_bridged_values_are_those_of_the_stock_function() -> None:
    stock, model = Model(rngs=nnx.Rngs(0)), Model(rngs=nnx.Rngs(0))
    nnx.bridge.lazy_init(stock, X)
    nnm.lazy_init(model, X)
    np.testing.assert_array_equal(model.bridged.kernel[...], stock.bridged.kernel[...])


def test_a_method_can_be_what_is_called() -> None:
    model = Model(rngs=nnx.Rngs(0))
    nnm.lazy_init(model.encode, X)
    assert model.bridged.kernel.shape == (4, 2)


def test_keys_that_were_drawn_are_not_handed_out_again() -> None:
    model = Model(rngs=nnx.Rngs(0))
    nnm.lazy_init(model, X)
    assert int(model.dropout.rngs.count[...]) == 1  # type: ignore[union-attr]


def test_it_runs_while_tracing() -> None:
    def build() -> nnx.State:
        return nnx.state(nnm.lazy_init(Model(rngs=nnx.Rngs(0)), X), nnx.BatchStat)

    values = jax.tree.leaves(jax.jit(build)())
    assert sorted(float(value.sum()) for value in values) == [0.0, 2.0]


def test_a_function_of_no_module_is_refused() -> None:
    with pytest.raises(ValueError, match="method of an NNX Module"):
        nnm.lazy_init(lambda x: x, X)
