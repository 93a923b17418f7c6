"""Variables that a call makes below ``nnm.scan``, ``nnm.vmap`` and ``nnm.remat``: caches that decoding starts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from nnx_migrate import linen as lazy_linen
from nnx_migrate import nn as nnm

L = 3
X = jnp.arange(8.0).reshape(2, 4)
KEY = jax.random.key(0)


class LinenLayer(linen.Module):
    """Its sums so far are a cache, which only decoding has."""

    @linen.compact
    def __call__(self, x: Any, decode: bool) -> Any:
        x = linen.Dense(4)(x)
        if decode:
            ready = self.has_variable("cache", "total")
            total = self.variable("cache", "total", jnp.zeros, x.shape)
            if ready:
                total.value = total.value + x
                x = total.value
        return x, None


class Layer(nnx.Module):
    def __init__(self, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(in_features, 4, rngs=rngs)

    def __call__(self, x: Any, decode: bool) -> Any:
        x = self.Dense_0(x)
        if decode:
            ready = nnm.has_variable(self, "cache", "total", made_later=True)
            total = nnm.lazy_variable(self, "cache", "total", jnp.zeros, x.shape)
            if ready:
                total.set_value(total[...] + x)
                x = total[...]
        return x, None


def lifted(library: Any, layer: Any, axis: int, remat: bool, over: str) -> Any:
    if remat:
        layer = library.remat(layer, prevent_cse=False, static_argnums=(2,))
    axes = {"params": 0, "cache": axis}
    if over == "lanes":
        splits = {"params": True}
        how = {"split_rngs": splits, "in_axes": (None, None), "out_axes": 0, "axis_size": L}
        return library.vmap(layer, variable_axes=axes, **how)
    if not over:
        return layer
    return library.scan(
        layer,
        variable_axes=axes,
        split_rngs={"params": True},
        length=L,
        in_axes=(library.broadcast,),
    )


class LinenNet(linen.Module):
    how: tuple[int, bool, str]

    @linen.compact
    def __call__(self, x: Any, decode: bool = False) -> Any:
        return lifted(linen, LinenLayer, *self.how)(name="layers")(x, decode)[0]


class Net(nnx.Module):
    def __init__(self, how: tuple[int, bool, str], *, in_features: int, rngs: nnx.Rngs) -> None:
        self.layers = lifted(nnm, Layer, *how)(in_features=in_features, rngs=rngs)

    def __call__(self, x: Any, decode: bool = False) -> Any:
        return self.layers(x, decode)[0]


@pytest.mark.parametrize(
    "how",
    [
        (0, False, "layers"),
        (1, False, "layers"),
        (0, True, "layers"),
        (0, True, ""),
        (0, False, "lanes"),
        (1, True, "lanes"),
    ],
)
def test_the_first_call_makes_what_linens_makes(how: tuple[int, bool, str]) -> None:
    linens, found = LinenNet(how), lazy_linen.lazy(Net)(how)
    params = linens.init(KEY, X)["params"]

    def caches(module: Any) -> Any:
        started = jax.jit(module.init, static_argnums=2)(KEY, X, True)["cache"]
        _, late = module.apply({"params": params}, X, True, mutable=["cache"])
        out, once = module.apply({"params": params, **late}, X, True, mutable=["cache"])
        again = module.apply({"params": params, **once}, X, True, mutable=["cache"])
        return started, late, out, once, again

    one, other = caches(found), caches(linens)
    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), one, other)


def test_a_built_module_holds_what_its_call_made() -> None:
    model = nnm.build(Net, (1, True, "layers"), in_features=4, rngs=KEY)
    model(X)
    assert "cache" not in nnm.variables_of(model)
    model(X, True)
    assert model.layers.total.shape == (2, L, 4)
    before = model.layers.total[...]
    model(X, True)
    assert not np.array_equal(model.layers.total[...], before)


def test_what_the_loop_does_not_stack_must_be_there_before() -> None:
    class Whole(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs) -> None:
            scan = nnm.scan(Layer, variable_axes={"params": 0}, length=L, in_axes=(nnm.broadcast,))
            self.layers = scan(in_features=4, rngs=rngs)

    with pytest.raises(ValueError, match="made the variable 'total'"):
        Whole(rngs=nnx.Rngs(0)).layers(X, True)
