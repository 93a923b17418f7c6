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


class Normed(nn.Module):
    """A Linen class that writes state, sows and drops."""

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
        x = nn.Dense(4, kernel_init=nn.with_partitioning(nn.initializers.normal(), ("a", "b")))(x)
        calls = self.variable("state", "calls", lambda: jnp.zeros(()))
        if not self.is_initializing():
            calls.value += 1
        self.sow("losses", "l2", jnp.sum(x**2))
        x = nn.BatchNorm(use_running_average=not train)(x)
        return nn.Dropout(0.5, deterministic=not train)(x)


class LinenOuter(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return Normed(name="inner")(x)


class Outer(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.inner = nnm.ToNNX(Normed(), rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.inner(x)


def test_a_plain_call_writes_the_state_in_place() -> None:
    model = nnm.lazy_init(Outer(rngs=nnx.Rngs(0, dropout=1)), X)
    calls, mean = model.inner.calls, model.inner.BatchNorm_0["mean"]
    start = jax.tree.structure(nnx.state(model))
    model(X)
    model(X)
    assert model.inner.calls is calls
    assert calls[...] == 2
    assert jnp.any(mean[...] != 0)
    assert jax.tree.structure(nnx.state(model)) == start


def test_evaluation_changes_nothing() -> None:
    linen = nn.BatchNorm(use_running_average=True)
    bridge = nnm.ToNNX(linen, rngs=nnx.Rngs(0))
    nnm.lazy_init(bridge, X)
    variables = nnm.variables_of(bridge)
    graphdef, state = nnx.split(bridge)
    before = jax.tree.map(np.asarray, nnx.state(bridge, nnx.BatchStat))
    compiled = jax.jit(lambda state, x: nnx.merge(graphdef, state, copy=True)(x))(state, X)
    np.testing.assert_array_equal(compiled, jax.jit(linen.apply)(variables, X))
    np.testing.assert_array_equal(bridge(X), linen.apply(variables, X))
    jax.tree.map(np.testing.assert_array_equal, before, nnx.state(bridge, nnx.BatchStat))


def test_axis_names_are_kept() -> None:
    model = nnm.lazy_init(Outer(rngs=nnx.Rngs(0)), X)
    boxed = LinenOuter().init(jax.random.key(0), X)["params"]["inner"]["Dense_0"]["kernel"]
    assert nnm.variables_of(model)["params"]["inner"]["Dense_0"]["kernel"].names == boxed.names


def test_apply_gives_linens_values_masks_and_losses() -> None:
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    linen = LinenOuter()
    values = linen.init(keys, X)
    values = {name: values[name] for name in ("params", "batch_stats", "state")}
    model = Outer(rngs=nnx.Rngs(0))
    for step in range(2):
        options = {
            "rngs": {"dropout": jax.random.key(step)},
            "mutable": ["batch_stats", "state", "losses"],
        }
        first = linen.apply(values, X, **options)
        second = nnm.apply(model, values, X, **options)
        jax.tree.map(np.testing.assert_array_equal, first, second)
        values = {**values, **{name: first[1][name] for name in ("batch_stats", "state")}}
    assert first[1]["state"]["inner"]["calls"] == 2


def test_a_write_that_apply_does_not_allow_is_linens_error() -> None:
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    values = LinenOuter().init(keys, X)
    with pytest.raises(Exception, match="immutable"):
        nnm.apply(Outer(rngs=nnx.Rngs(0)), values, X, rngs={"dropout": jax.random.key(0)})


def test_what_is_sown_is_captured_and_else_leaves_no_trace() -> None:
    model = nnm.lazy_init(Outer(rngs=nnx.Rngs(0)), X)
    kind = nnm.variable_type("losses")
    _, losses = nnx.capture(model, kind)(X)
    (found,) = jax.tree.leaves(losses)
    assert found > 0


def test_gradients_reach_the_bridged_parameters() -> None:
    model = nnm.lazy_init(Outer(rngs=nnx.Rngs(0)), X)
    grads = nnx.grad(lambda model: jnp.sum(model(X) ** 2))(model)
    assert jnp.any(grads["inner"]["Dense_0"]["kernel"][...] != 0)
    assert model.inner.calls[...] == 1
