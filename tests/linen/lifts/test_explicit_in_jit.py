"""``nn.jit(lazy(Class))``: an explicit class whose calls are compiled, and the keys that it counts."""

from __future__ import annotations

from functools import partial
from typing import Any

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import linen as nn
from nnx_migrate import nn as nnm
from nnx_migrate.linen import lazy

X = jnp.arange(6.0).reshape(2, 3)


class Plain(flax.linen.Module):
    parts: Any = ()

    @partial(flax.linen.remat, prevent_cse=False)
    def __call__(self, x):
        return jnp.sin(x)


class ExplicitPlain(nnx.Module):
    def __init__(self, parts: Any = (), *, rngs: Any):
        nnm.set_submodules(self, "parts", parts)

    @property
    def parts(self) -> Any:
        return nnm.get_submodules(self, "parts")

    @partial(nnm.remat, prevent_cse=False)
    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.sin(x)


class Noisy(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x):
        return flax.linen.Dropout(0.5, deterministic=False)(flax.linen.Dense(3)(x))


class ExplicitNoisy(nnx.Module):
    def __init__(self, *, in_features: int, rngs: Any):
        self.Dense_0 = nnx.Linear(in_features, 3, rngs=rngs)
        self.Dropout_0 = nnx.Dropout(0.5, deterministic=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.Dropout_0(self.Dense_0(x))


def run(linen: Any, part: Any) -> Any:
    class Net(linen.Module):  # type: ignore[misc]
        @linen.compact
        def __call__(self, x):
            lifted = linen.jit(part)(name="part")
            return linen.Dense(2)(lifted(lifted(x)))

    keys = {name: jax.random.key(number) for number, name in enumerate(("params", "dropout"))}
    variables = Net().init(keys, X)
    outputs = [Net().apply(variables, X, rngs=keys) for _ in range(2)]  # traced, then compiled
    return {"params": variables["params"], "outputs": outputs}


@pytest.mark.parametrize(("part", "explicit"), [(Plain, ExplicitPlain), (Noisy, ExplicitNoisy)])
def test_an_explicit_class_is_compiled_as_linens(part: Any, explicit: Any) -> None:
    wanted, given = run(flax.linen, part), run(nn, lazy(explicit))
    assert len(jax.tree.leaves(wanted)) == len(jax.tree.leaves(given))
    for one, other in zip(wanted["outputs"], given["outputs"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
