"""``nnm.stacked`` and functions lifted over it, against Linen's lifts of functions of a module."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from nnx_migrate import nn as nnm

from .oracle import array, check

AXES: dict[str, Any] = {"variable_axes": {"params": 1}, "split_rngs": {"params": True}}


class LinenLayer(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = linen.Dense(4, bias_init=linen.initializers.normal())(x)
        return x * self.param("scale", linen.initializers.normal(), (1, 4))


class Layer(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(4, 4, bias_init=nnx.initializers.normal(), rngs=rngs)
        self.scale = nnm.param(rngs, nnx.initializers.normal(), (1, 4))

    def __call__(self, x: Any) -> Any:
        return self.Dense_0(x) * self.scale[...]


class LinenModel(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        layers, heads = LinenLayer(name="layers"), LinenLayer(name="heads")
        x, _ = linen.scan(lambda m, c, _: (m(c), ()), **AXES, length=3)(layers, x, ())
        return linen.vmap(lambda m, x: m(x), **AXES, in_axes=None, axis_size=2)(heads, x)


class Model(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.layers = nnm.stacked(lambda rngs: Layer(rngs=rngs), **AXES, length=3, rngs=rngs)
        self.heads = nnm.stacked(lambda rngs: Layer(rngs=rngs), **AXES, axis_size=2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x, _ = nnm.scan(lambda m, c, _: (m(c), ()), **AXES, length=3)(self.layers, x, ())
        return nnm.vmap(lambda m, x: m(x), **AXES, in_axes=None, axis_size=2)(self.heads, x)


def test_values_gradients_and_program_are_linens() -> None:
    check(LinenModel(), lambda rngs: Model(rngs=rngs), array(2, 4))


def test_the_same_seed_gives_linens_parameters() -> None:
    old = jax.jit(LinenModel().init)(jax.random.key(3), array(2, 4))
    new = jax.jit(lambda key: nnm.variables_of(nnm.build(Model, rngs=key)))(jax.random.key(3))
    assert jax.tree.structure(old) == jax.tree.structure(new)
    for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
        assert one.shape == other.shape
        assert bool((one == other).all())


def test_a_module_of_one_layer_is_refused() -> None:
    plain = Layer(rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match=r"build the module with nnm\.stacked"):
        nnm.scan(lambda m, c, _: (m(c), ()), **AXES, length=3)(plain, jnp.ones((2, 4)), ())
    with pytest.raises(ValueError, match=r"build the module with nnm\.stacked"):
        nnm.vmap(lambda m, x: m(x), **AXES, axis_size=2)(plain, jnp.ones((2, 4)))


def test_the_number_of_layers_is_needed() -> None:
    with pytest.raises(ValueError, match="expected the number of layers"):
        nnm.stacked(lambda rngs: Layer(rngs=rngs), **AXES, rngs=nnx.Rngs(0))


def test_the_class_of_the_module_stays_one_of_its_own() -> None:
    one, other = (
        nnm.stacked(lambda rngs: Layer(rngs=rngs), **AXES, length=3, rngs=nnx.Rngs(0))
        for _ in range(2)
    )
    assert isinstance(one, Layer)
    assert type(one).__name__ == "Layer"
    assert nnx.graphdef(one) == nnx.graphdef(other)
