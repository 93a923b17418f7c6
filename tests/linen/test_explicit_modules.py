"""`explicit`: the module that `lazy(Class)(...)` stands for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import linen as nn
from nnx_migrate import nn as nnm


class Net(nnx.Module):
    """Two layers; the size of the input is not told."""

    def __init__(self, width: int, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(in_features, width, rngs=rngs)
        self.second = nnx.Linear(width, 1, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.second(nnx.relu(self.first(x)))


X = jnp.ones((2, 3))


@pytest.mark.parametrize("rngs", [jax.random.key(4), {"params": jax.random.key(4)}])
def test_it_holds_what_init_gives(rngs: object) -> None:
    definition = nn.lazy(Net)(5)
    model = nn.explicit(definition, X, rngs=rngs)
    assert type(model) is Net
    expected = definition.init(rngs, X)
    assert expected["params"]["first"]["kernel"].shape == (3, 5)
    jax.tree.map(np.testing.assert_array_equal, nnm.variables_of(model), expected)
    np.testing.assert_array_equal(model(X), definition.apply(expected, X))


def test_the_definition_can_build_again() -> None:
    definition = nn.lazy(Net)(5)
    one, other = (nn.explicit(definition, X, rngs=jax.random.key(i)) for i in range(2))
    assert one is not other
    assert np.any(one.first.kernel[...] != other.first.kernel[...])


def test_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected lazy\(Class\)\(...\), found Dense"):
        nn.explicit(nn.Dense(3), X, rngs=jax.random.key(0))


class Named(nnx.Module):
    """Names that are not in the order of the alphabet."""

    def __init__(self, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.stem = nnx.Linear(in_features, 2, rngs=rngs)
        for i in range(11):
            setattr(self, f"block_{i}", nnx.LayerNorm(2, rngs=rngs))
        self.alpha = nnx.Param(jnp.ones(2))

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.stem(x)
        for i in range(11):
            x = getattr(self, f"block_{i}")(x)
        return x * self.alpha[...][None]


class Around(nn.Module):
    """Lazy code around it."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(1)(nn.lazy(Named)(name="named")(x))


def test_names_are_in_the_order_in_which_they_were_made() -> None:
    """A loop over them (a new key for each, another library's values in its order) is Linen's."""
    blocks = [f"block_{i}" for i in range(11)]
    params = nn.lazy(Named)().init(jax.random.key(0), X)["params"]
    assert list(params) == ["stem", *blocks, "alpha"]
    assert list(params["stem"]) == ["kernel", "bias"]
    assert list(params["block_0"]) == ["scale", "bias"]
    inside = Around().init(jax.random.key(0), X)["params"]
    assert list(inside) == ["named", "Dense_0"]
    assert list(inside["named"]) == ["stem", *blocks, "alpha"]


class Statistics(nnx.Module):
    """Explicit: a call makes its variables, in an order that is not their names'."""

    def __call__(self, x: jax.Array) -> jax.Array:
        mean = nnm.lazy_variable(self, "stats", "mean", lambda: x.mean())
        count = nnm.lazy_variable(self, "stats", "count", jnp.zeros, ())
        return x - mean[...] + count[...]


class Counted(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.z = Statistics()
        self.a = nnm.variable("stats", jnp.zeros(()))

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.z(x) + self.a[...]


def test_variables_that_a_call_makes_stand_where_their_module_does() -> None:
    stats = nn.lazy(Counted)().init(jax.random.key(0), X)["stats"]
    assert list(stats) == ["z", "a"]
    assert list(stats["z"]) == ["mean", "count"]


def test_a_call_that_python_refuses_names_the_method() -> None:
    with pytest.raises(TypeError, match=r"Net.__call__\(\) got an unexpected keyword argument"):
        nn.lazy(Net)(5).init(jax.random.key(0), X, carry=X)
