"""What modules keep about themselves has names that no class of a user has."""

import flax.linen
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import nnx_migrate.linen as nn
from tests.linen.core.models import KEY, X

# Linen's modules have them as well, in their `__dict__` or as fields; the last one is NNX's.
KNOWN = {
    "_compact_name_scope_methods",
    "_id",
    "_parent_ref",
    "_state",
    "name",
    "parent",
    "scope",
    "_pytree__state",
}


class Lazy(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class Explicit(nnx.Module):
    def __init__(self, *, in_features: int, rngs: nnx.Rngs) -> None:
        self.layer = nnx.Linear(in_features, 3, rngs=rngs)

    def __call__(self, x):
        return self.layer(x)


def own_names(cls: type) -> set[str]:
    return (
        {name for name in dir(cls) if not name.startswith("__")}
        - set(dir(nnx.Module))
        - set(dir(flax.linen.Module))
    )


@pytest.mark.parametrize(
    "cls",
    [
        nn.Module,
        type(nn.build(Lazy(), X, rngs=KEY)),
        nn.lazy(Explicit),
        type(nn.build(nn.lazy(Explicit)(), X, rngs=KEY)),
    ],
    ids=["lazy", "lazy, built", "explicit", "explicit, built"],
)
def test_own_names_are_like_no_users(cls: type) -> None:
    names = own_names(cls)
    assert names
    assert {name for name in names if not name.startswith("_nnm_")} <= KNOWN


def test_methods_may_be_called_as_anything_private() -> None:
    class Net(nn.Module):
        def _run(self, x):
            return x * 2

        def _keys(self, x):
            return x + 1

        @nn.compact
        def __call__(self, x):
            return self._keys(self._run(nn.Dense(3)(x)))

    variables = Net().init(KEY, X)
    kernel = variables["params"]["Dense_0"]["kernel"]
    np.testing.assert_array_equal(Net().apply(variables, X), (X @ kernel) * 2 + 1)
    np.testing.assert_array_equal(
        nn.build(Net(), X, rngs=KEY)(jnp.zeros_like(X)), jnp.ones((*X.shape[:-1], 3))
    )
