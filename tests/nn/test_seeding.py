"""``nnm.build``: the same seed gives a migrated module Linen's parameters, bit by bit."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm

X = jnp.ones((2, 6, 6, 3))


def same(left: Any, right: Any) -> None:
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(one, other)
    assert jax.tree.leaves(left)


class LinenInner(linen.Module):
    features: int

    @linen.compact
    def __call__(self, x: Any) -> Any:
        scale = self.param("scale", linen.initializers.normal(), (self.features,))
        shift = self.param("shift", linen.initializers.uniform(), (self.features,))
        x = linen.Conv(self.features, (3, 3))(x)
        return linen.Dropout(0.5, deterministic=True)(
            x * scale[None, None, None] + shift[None, None, None]
        )


class LinenNet(linen.Module):
    features: int

    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = LinenInner(self.features, name="Inner_0")(x)
        x = linen.BatchNorm(use_running_average=True)(x)
        x = x.mean((1, 2))
        x = linen.Dense(5, bias_init=linen.initializers.normal())(x)
        return linen.Dense(2)(linen.LayerNorm()(x))


class Inner(nnx.Module):
    def __init__(self, features: int, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.scale = nnx.Param(nnx.initializers.normal()(rngs.params(), (features,)))
        self.shift = nnx.Param(nnx.initializers.uniform()(rngs.params(), (features,)))
        self.Conv_0 = nnx.Conv(in_features, features, (3, 3), rngs=rngs)
        self.Dropout_0 = nnm.Dropout(0.5, deterministic=True, rngs=rngs)


class Net(nnx.Module):
    def __init__(self, features: int, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.Inner_0 = Inner(features, in_features=in_features, rngs=rngs)
        self.BatchNorm_0 = nnx.BatchNorm(features, rngs=rngs)
        self.Dense_0 = nnx.Linear(features, 5, bias_init=nnx.initializers.normal(), rngs=rngs)
        self.LayerNorm_0 = nnx.LayerNorm(5, rngs=rngs)
        self.Dense_1 = nnx.Linear(5, 2, rngs=rngs)


@pytest.mark.parametrize(
    "rngs",
    [
        jax.random.key(3),
        jax.random.PRNGKey(3),
        {"params": jax.random.key(3), "dropout": jax.random.key(4)},
    ],
)
def test_parameters_are_linens(rngs: Any) -> None:
    expected = LinenNet(4).init(rngs, X)
    same(nnm.variables_of(nnm.build(Net, 4, in_features=3, rngs=rngs)), expected)


def test_parameters_are_linens_under_jit() -> None:
    make = functools.partial(Net, 4)
    expected = jax.jit(LinenNet(4).init)(jax.random.key(1), X)
    found = jax.jit(lambda key: nnm.variables_of(nnm.build(make, in_features=3, rngs=key)))
    same(found(jax.random.key(1)), expected)


class LinenCells(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = linen.Embed(7, 4)(x)
        x = linen.MultiHeadDotProductAttention(2)(x, x)
        return linen.RNN(linen.OptimizedLSTMCell(3))(x)


class Cells(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Embed_0 = nnx.Embed(7, 4, rngs=rngs)
        self.MultiHeadDotProductAttention_0 = nnm.MultiHeadDotProductAttention(
            2, in_features=4, rngs=rngs
        )
        self.OptimizedLSTMCell_0 = nnm.OptimizedLSTMCell(3, in_features=4, rngs=rngs)


def test_cells_and_attention_are_linens() -> None:
    expected = LinenCells().init(jax.random.key(0), jnp.ones((2, 5), jnp.int32))
    same(nnm.variables_of(nnm.build(Cells, rngs=jax.random.key(0))), expected)


class Stack(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        @nnx.split_rngs(splits=3)
        @nnx.vmap
        def make(rngs: nnx.Rngs) -> nnx.Linear:
            return nnx.Linear(2, 2, rngs=rngs)

        self.layers = make(rngs)
        self.head = nnx.Linear(2, 2, rngs=rngs)


def test_stacked_modules_get_distinct_values() -> None:
    module = nnm.build(Stack, rngs=jax.random.key(0))
    kernels = [*module.layers.kernel[...], module.head.kernel[...]]
    assert len({np.asarray(one).tobytes() for one in kernels}) == 4


def test_streams_of_the_module_are_plain_and_distinct() -> None:
    class Two(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            self.a = nnm.Dropout(0.5, rngs=rngs)
            self.b = nnx.Dropout(0.5, rngs=rngs)

    module = nnm.build(Two, rngs=jax.random.key(0))
    assert type(module.a.rngs) is nnx.RngStream
    assert type(module.b.rngs) is nnx.RngStream
    assert module.a.rngs() != module.b.rngs()


def test_a_missing_params_key_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"stream 'params'.*found \['dropout'\]"):
        nnm.build(Cells, rngs={"dropout": jax.random.key(0)})


class LinenPower(linen.Module):
    """A variable that starts from a key of its own stream, between two parameters."""

    @linen.compact
    def __call__(self, x: Any) -> Any:
        kernel = self.param("kernel", linen.initializers.normal(), (3, 2))
        first = self.variable(
            "power", "first", linen.initializers.normal(), self.make_rng("power"), (2,)
        )
        second = self.variable(
            "power", "second", linen.initializers.uniform(), self.make_rng("power"), (2,)
        )
        bias = self.param("bias", linen.initializers.uniform(), (2,))
        return x @ kernel + bias + first.value * second.value


class LinenPowers(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        return LinenPower(name="one")(x) + LinenPower(name="two")(x)


class Power(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.kernel = nnx.Param(nnx.initializers.normal()(rngs.params(), (3, 2)))
        first = nnx.initializers.normal()(nnm.make_rng(rngs, "power"), (2,))
        self.first = nnm.variable("power", first)
        second = nnx.initializers.uniform()(nnm.make_rng(rngs, "power"), (2,))
        self.second = nnm.variable("power", second)
        self.bias = nnx.Param(nnx.initializers.uniform()(rngs.params(), (2,)))


class Powers(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.one = Power(rngs=rngs)
        self.two = Power(rngs=rngs)


@pytest.mark.parametrize("own", [True, False], ids=["its own stream", "the stream of parameters"])
def test_variables_that_start_from_a_key_are_linens(own: bool) -> None:
    rngs = {"params": jax.random.key(5)} | ({"power": jax.random.key(6)} if own else {})
    expected = LinenPowers().init(rngs, jnp.ones(3))
    found = nnx.to_pure_dict(nnx.state(nnm.build(Powers, rngs=rngs)))
    for name in ("one", "two"):
        for collection, keys in (("params", ("kernel", "bias")), ("power", ("first", "second"))):
            for key in keys:
                np.testing.assert_array_equal(found[name][key], expected[collection][name][key])


def test_a_stream_that_only_layers_own_follows_its_seed() -> None:
    def masks(seed: int) -> Any:
        rngs = {"params": jax.random.key(1), "dropout": jax.random.key(seed)}
        return nnm.build(nnm.Dropout, 0.5, deterministic=False, rngs=rngs)(jnp.ones(64))

    np.testing.assert_array_equal(masks(2), masks(2))
    assert (masks(2) != masks(3)).any()
