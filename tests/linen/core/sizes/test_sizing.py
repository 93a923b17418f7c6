"""Sizes of a call with given variables are those of the call that made them; nothing runs to find them again."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from nnx_migrate.linen import Size, lazy

runs: list[tuple[int, ...]] = []


class Net(nnx.Module):
    """Its second layer takes what a reshape of the first one's output has."""

    def __init__(self, width: int, *, in_features: int, o_in_features: int, rngs: nnx.Rngs) -> None:
        self.h = nnx.Linear(in_features, width, rngs=rngs)
        self.o = nnx.Linear(o_in_features, 2, rngs=rngs)

    def __call__(self, x: jax.Array) -> Any:
        runs.append(x.shape)
        return self.o(self.h(x).reshape(x.shape[0], -1))


@pytest.mark.parametrize(("shape", "number"), [((2, 3, 4), 1), ((5, 3, 4), 2)])
def test_a_call_with_variables_runs_once_if_its_kind_made_them(
    shape: tuple[int, ...], number: int
) -> None:
    net = lazy(Net, o_in_features=Size(of="o"))(6)
    variables = net.init(jax.random.key(0), jnp.ones((2, 3, 4)))
    runs.clear()
    net.apply(variables, jnp.ones(shape))
    assert len(runs) >= number
    assert (len(runs) == 1) == (number == 1)
    assert variables["params"]["o"]["kernel"].shape == (18, 2)


def test_other_variables_than_the_first_call_made_show_other_sizes() -> None:
    net = lazy(Net, o_in_features=Size(of="o"))(6)
    small = net.init(jax.random.key(0), jnp.ones((2, 3, 4)))
    large = net.init(jax.random.key(0), jnp.ones((2, 5, 4)))
    assert net.apply(small, jnp.ones((2, 3, 4))).shape == (2, 2)
    assert net.apply(large, jnp.ones((2, 5, 4))).shape == (2, 2)
    assert large["params"]["o"]["kernel"].shape == (30, 2)


def test_a_traced_call_has_the_operations_of_the_class_alone() -> None:
    net = lazy(Net, o_in_features=Size(of="o"))(6)
    x = jnp.ones((2, 3, 4))
    variables = net.init(jax.random.key(0), x)
    found = [str(one.primitive) for one in jax.make_jaxpr(net.apply)(variables, x).eqns]
    layer = ["dot_general", "reshape", "add"]
    assert found == [*layer, "reshape", *layer]
