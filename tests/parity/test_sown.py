"""What an explicit module sows is compared with what Linen's sows, submodules of both kinds alike."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.parity import ParityCase, check


class Inner(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.Dense(4, name="up")(x)
        self.sow("intermediates", "balance", jnp.mean(x * x))
        self.sow("intermediates", "balance", jnp.sum(x))
        return x


class Outer(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return Inner(name="inner")(x) + 1


class MigratedInner(nnx.Module):
    def __init__(self, factor: float, name: str, rngs: nnx.Rngs):
        self.up = nnx.Linear(3, 4, rngs=rngs)
        self.factor = factor
        self.name = name

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.up(x)
        nnm.sow(self, "intermediates", self.name, self.factor * jnp.mean(x * x))
        nnm.sow(self, "intermediates", self.name, jnp.sum(x))
        return x


class MigratedOuter(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, factor: float = 1, name: str = "balance"):
        self.inner = MigratedInner(factor, name, rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.inner(x) + 1


def report(**options: Any) -> Any:
    return check(
        ParityCase(
            linen=Outer(),
            nnx=lambda rngs: MigratedOuter(rngs, **options),
            inputs=(jnp.ones((2, 3)),),
            collections=("intermediates",),
        )
    )


def test_equal_sown_values_are_compared() -> None:
    found = report()
    collections = found.check("collections")
    assert (found.ok, collections.status, collections.leaves) == (True, "pass", 2)


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        ({"factor": 2}, "intermediates/inner/balance/0: 1 of 1 elements differ"),
        ({"name": "load"}, "intermediates/inner/balance/0: only in Linen"),
    ],
)
def test_another_value_or_name_is_different(options: dict[str, Any], detail: str) -> None:
    found = report(**options)
    assert not found.ok
    assert found.check("collections").details[0].startswith(detail)
