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


def test_what_is_sown_where_no_run_asks_for_it_is_named():
    def named(linen: nn.Module, nnx_module: Any, **options: Any) -> list[str]:
        x = jnp.ones((2, 3))
        found = check(ParityCase(linen=linen, nnx=nnx_module, inputs=(x,), **options))
        return [line for line in found.not_checked if "no run asked" in line]

    lost = named(Outer(), lambda rngs: MigratedOuter(rngs))
    (line,) = lost
    start = "collections: no run asked for intermediates, into which Linen sows balance: "
    assert line == f"{start}add collections=('intermediates',)"
    asked = ("intermediates",)
    assert named(Outer(), lambda rngs: MigratedOuter(rngs), collections=asked) == []


class Plain(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(4, name="up")(x)


class Sowing(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.up = nnx.Linear(3, 4, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.up(x)
        self.sow(nnx.Intermediate, "added", x)
        return x


@pytest.mark.filterwarnings("ignore:Using 'Module.sow")
def test_what_only_nnx_sows_is_named():
    found = check(
        ParityCase(linen=Plain(), nnx=lambda rngs: Sowing(rngs), inputs=(jnp.ones((2, 3)),))
    )
    assert any("into which NNX sows added" in line for line in found.not_checked)
