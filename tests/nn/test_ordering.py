"""The order in which ``variables_of`` lists variables: that of the call, as in Linen's ``init``."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from nnx_migrate import nn as nnm

X = jnp.ones((2, 3))


def _dense(rngs: nnx.Rngs) -> nnx.Linear:
    return nnx.Linear(3, 3, rngs=rngs)


class Pairs(nnx.Module):
    """Made list by list, called pair by pair, the last one made first."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        for kind in ("dense", "other"):
            for i in range(2):
                setattr(self, f"{kind}_{i}", _dense(rngs))
        self.scale = nnx.Param(jnp.ones(3))
        self.stem = _dense(rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.stem(x)
        for i in range(2):
            x = getattr(self, f"other_{i}")(getattr(self, f"dense_{i}")(x))
        return x * self.scale[...][None]


class Normed(nnx.Module):
    """``norm()(dense(x))``, whose statistics Linen makes before its scale."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm = nnm.BatchNorm(use_running_average=False, in_features=3, rngs=rngs)
        self.first = nnm.BatchNorm(use_running_average=False, in_features=3, rngs=rngs)
        self.dense = _dense(rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.norm(self.dense(self.first(x)))


class Recurrent(nnx.Module):
    """A cell below ``RNN``, whose scan sorts names; it is made outside of it."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.out = nnx.Linear(2, 3, rngs=rngs)
        self.cell = nnm.GRUCell(2, in_features=3, rngs=rngs)
        self.rnn = nnm.RNN(self.cell)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.out(self.rnn(x[None]))


class Asking(Pairs):
    """A call that needs values: what is listed is as it was made."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return super().__call__(x) if self.stem(x).sum() < 1e6 else x


CELL = ["hn", "hr", "hz", "in", "ir", "iz"]


@pytest.mark.parametrize(
    ("kind", "collection", "path", "expected"),
    [
        (Pairs, "params", (), ["stem", "dense_0", "other_0", "dense_1", "scale", "other_1"]),
        (Normed, "params", (), ["first", "dense", "norm"]),
        (Normed, "batch_stats", (), ["first", "norm"]),
        (Recurrent, "params", (), ["cell", "out"]),
        (Recurrent, "params", ("cell",), CELL),
        (Asking, "params", (), ["dense_0", "dense_1", "other_0", "other_1", "scale", "stem"]),
    ],
)
def test_names_come_as_the_call_reaches_them(
    kind: Any, collection: str, path: tuple[str, ...], expected: list[str]
) -> None:
    found = nnm.variables_of(nnm.build(kind, rngs=jax.random.key(0)), X)[collection]
    for name in path:
        found = found[name]
    assert list(found) == expected


def test_statistics_are_the_first_collection_where_a_norm_comes_first() -> None:
    found = nnm.variables_of(nnm.build(Normed, rngs=jax.random.key(0)), X)
    assert list(found) == ["batch_stats", "params"]


def test_without_inputs_names_come_as_they_were_made() -> None:
    found = nnm.variables_of(nnm.build(Normed, rngs=jax.random.key(0)))
    assert list(found["params"]) == ["norm", "first", "dense"]


def test_a_call_that_changes_nothing_runs_once() -> None:
    calls = []

    class Noted(Normed):
        def __call__(self, x: jax.Array) -> jax.Array:
            calls.append(isinstance(self.norm.scale[...], jax.core.Tracer))
            return super().__call__(x)

    nnm.variables_of(nnm.build(Noted, rngs=jax.random.key(0)), X)
    assert calls == [True]


def test_values_that_a_call_updates_are_those_of_the_call() -> None:
    class Moved(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.count = nnm.variable("stats", jnp.zeros(()), moved_by_init=True)

        def __call__(self, x: jax.Array) -> jax.Array:
            self.count.set_value(self.count[...] + x.sum())
            return x

    found = nnm.variables_of(nnm.build(Moved, rngs=jax.random.key(0)), X)
    assert float(found["stats"]["count"]) == 6.0
