"""What ``apply`` makes beside variables that are held: from Linen's keys, or with Linen's error."""

from __future__ import annotations

from typing import Any

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors, nnx

from nnx_migrate import linen as nn
from nnx_migrate import nn as nnm
from tests.linen.core.models import KEY, X


class Codes(flax.linen.Module):
    """A table of codes that is no parameter, as of a quantiser."""

    codes: int

    @flax.linen.compact
    def __call__(self, x):
        normal = flax.linen.initializers.normal()
        scale = self.param("scale", normal, (1, x.shape[-1]))
        size = (self.codes, x.shape[-1])
        table = self.variable("vq", "table", lambda: normal(self.make_rng("params"), size))
        mean = self.variable("vq", "mean", lambda: table.value)
        other = self.variable("other", "other", lambda: normal(self.make_rng("params"), size))
        return (x * scale).sum() + (table.value * mean.value).sum() + other.value.sum()


class Net(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x):
        return Codes(3)(flax.linen.Dense(4)(x))


class ExplicitCodes(nnx.Module):
    def __init__(self, codes: int, *, in_features: int, rngs: nnx.Rngs):
        normal = nnx.initializers.normal()
        self.scale = nnx.Param(normal(rngs.params(), (1, in_features)))
        size = (codes, in_features)
        self.table = nnm.variable("vq", normal(rngs.params(), size))
        self.mean = nnm.variable("vq", self.table[...])
        self.other = nnm.variable("other", normal(rngs.params(), size))

    def __call__(self, x: jax.Array) -> jax.Array:
        scaled = (x * self.scale).sum()
        return scaled + (self.table * self.mean).sum() + self.other[...].sum()


class ExplicitNet(nnx.Module):
    def __init__(self, *, in_features: int, rngs: nnx.Rngs):
        self.Dense_0 = nnx.Linear(in_features, 4, rngs=rngs)
        self.Codes_0 = ExplicitCodes(3, in_features=4, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.Codes_0(self.Dense_0(x))


PAIRS = [
    (lambda: Codes(3), lambda: nn.lazy(ExplicitCodes)(3)),
    (Net, lambda: nn.lazy(ExplicitNet)()),
]


@pytest.mark.parametrize(("linen", "lazy"), PAIRS)
@pytest.mark.parametrize("held", [["params"], ["params", "vq"], ["params", "other"]])
def test_it_starts_from_the_keys_that_are_left_to_it(linen: Any, lazy: Any, held: Any) -> None:
    def later(module: Any) -> Any:
        variables = {name: module.init(KEY, X)[name] for name in held}
        return module.apply(variables, X, rngs={"params": KEY}, mutable=["vq", "other"])

    wanted, found = later(linen()), later(lazy())
    assert jax.tree.structure(found[1]) == jax.tree.structure(wanted[1])
    jax.tree.map(np.testing.assert_array_equal, found[1], wanted[1])
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-6)


@pytest.mark.parametrize("make", [one for pair in PAIRS for one in pair])
def test_without_a_key_it_is_linens_error(make: Any) -> None:
    module = make()
    variables = module.init(KEY, X)
    with pytest.raises(errors.InvalidRngError):
        module.apply({"params": variables["params"]}, X, mutable=["vq", "other"])


def test_state_that_starts_from_no_key_needs_none() -> None:
    class Counts(nnx.Module):
        def __init__(self, *, in_features: int, rngs: nnx.Rngs):
            self.dense = nnx.Linear(in_features, 2, rngs=rngs)
            self.seen = nnm.variable("stats", jnp.zeros(()))

        def __call__(self, x: jax.Array) -> jax.Array:
            self.seen[...] = self.seen[...] + 1
            return self.dense(x)

    module = nn.lazy(Counts)()
    params = module.init(KEY, X)["params"]
    _, changed = module.apply({"params": params}, X, mutable=["stats"])
    assert changed["stats"]["seen"] == 1


@pytest.mark.parametrize("lost", ["scale", "Dense_0"])
@pytest.mark.parametrize("names", [["params"], ["params", "vq", "other"]])
def test_parameters_beside_others_that_are_held_are_made_as_well(lost: str, names: Any) -> None:
    linen, lazy = PAIRS[lost == "Dense_0"]

    def later(module: Any) -> Any:
        variables = {name: dict(module.init(KEY, X)[name]) for name in names}
        variables["params"].pop(lost)
        rngs = {"params": jax.random.key(5)}
        return module.apply(variables, X, rngs=rngs, mutable=["params", "vq", "other"])

    wanted, found = later(linen()), later(lazy())
    assert jax.tree.structure(found[1]) == jax.tree.structure(wanted[1])
    jax.tree.map(np.testing.assert_array_equal, found[1], wanted[1])
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-6)


MISUSES = {
    "parameters without a key": lambda module, v: module.apply(v, X, mutable=["params"]),
    "state that may not be made": lambda module, v: module.init(KEY, X, mutable=["params"]),
    "state beside the parameters": lambda module, v: module.init(
        KEY, X, mutable=flax.core.DenyList("other")
    ),
}


@pytest.mark.parametrize("misuse", MISUSES.values(), ids=MISUSES)
@pytest.mark.parametrize(("linen", "lazy"), PAIRS)
def test_what_may_not_be_made_is_linens_error(linen: Any, lazy: Any, misuse: Any) -> None:
    variables = linen().init(KEY, X)
    some = {**variables, "params": dict(list(variables["params"].items())[1:])}
    with pytest.raises(errors.FlaxError) as wanted:
        misuse(linen(), some)
    with pytest.raises(wanted.type):
        misuse(lazy(), some)
