"""Layers that keep what they saw: caches of a scanned stack are compared after a call, layer by layer."""

from __future__ import annotations

from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.parity import ParityCase, check

BATCH, LENGTH, WIDTH, LAYERS = 2, 5, 4, 3
X = np.random.default_rng(0).normal(size=(BATCH, 1, WIDTH)).astype(np.float32)


def attended(query: Any, keys: Any, values: Any, index: Any) -> Any:
    """What a token sees of those before it, and of itself."""
    scores = jnp.einsum("bqf,bkf->bqk", query, keys)
    scores = jnp.where(jnp.arange(LENGTH) <= index, scores, -1e9)
    return jax.nn.softmax(scores) @ values


def written(cache: Any, entry: Any, index: Any) -> Any:
    return jax.lax.dynamic_update_slice(cache, entry, (0, index, 0))


class LinenAttention(nn.Module):
    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        query, key, value = (nn.Dense(WIDTH, name=name)(x) for name in ("query", "key", "value"))
        is_there = self.has_variable("cache", "index")
        shape = (BATCH, LENGTH, WIDTH)
        keys = self.variable("cache", "cached_key", jnp.zeros, shape)
        values = self.variable("cache", "cached_value", jnp.zeros, shape)
        index = self.variable("cache", "index", lambda: jnp.zeros((), jnp.int32))
        at = index.value
        all_keys, all_values = written(keys.value, key, at), written(values.value, value, at)
        if is_there:
            keys.value, values.value, index.value = all_keys, all_values, at + 1
        return x + attended(query, all_keys, all_values, at), None


class LinenStack(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        stack = nn.scan(
            LinenAttention,
            variable_axes={"params": 0, "cache": 0},
            split_rngs={"params": True},
            length=LAYERS,
        )
        return stack(name="layers")(x, None)[0]


class Attention(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.query = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.key = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.value = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.cached_key = nnx.Cache(jnp.zeros((BATCH, LENGTH, WIDTH)))
        self.cached_value = nnx.Cache(jnp.zeros((BATCH, LENGTH, WIDTH)))
        self.index = nnx.Cache(jnp.zeros((), jnp.int32))

    def __call__(self, x: Any, _: Any = None) -> Any:
        at = self.index[...]
        query, key, value = self.query(x), self.key(x), self.value(x)
        self.cached_key[...] = written(self.cached_key[...], key, at)
        self.cached_value[...] = written(self.cached_value[...], value, at)
        self.index[...] = at + 1
        return x + attended(query, self.cached_key[...], self.cached_value[...], at), None


class Stack(nnx.Module):
    axes: ClassVar[dict[str, int]] = {"params": 0, "cache": 0}

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.layers = nnm.scan(
            Attention,
            variable_axes=self.axes,
            split_rngs={"params": True},
            length=LAYERS,
        )(rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.layers(x, None)[0]


class DiscardsCaches(Stack):
    """A loop over the layers that hands on activations, and no state (B26)."""

    def __call__(self, x: Any) -> Any:
        graphdef, state = nnx.split(self.layers)

        def body(x: Any, layer: Any) -> Any:
            return Attention.__call__(nnx.merge(graphdef, layer, copy=True), x)

        return jax.lax.scan(body, x, state)[0]


class ScansWithoutCaches(Stack):
    """The lift is told of parameters alone (B26)."""

    axes: ClassVar[dict[str, int]] = {"params": 0}


class KeepsTheFirst(Stack):
    """Every layer gets the cache of the first one back."""

    def __call__(self, x: Any) -> Any:
        x = super().__call__(x)
        for variable in (self.layers.cached_key, self.layers.cached_value):
            variable[...] = jnp.broadcast_to(variable[...][:1], variable[...].shape)
        return x


def case_of(stack: type[Stack]) -> ParityCase:
    return ParityCase(
        linen=LinenStack(),
        nnx=lambda rngs: stack(rngs=rngs),
        inputs=(X,),
        collections=("cache",),
    )


def test_a_stack_that_decodes_is_the_same_program() -> None:
    report = check(case_of(Stack))
    assert report.verdict in ("identical", "equal_by_rules"), report.to_json()
    assert report.check("collections").leaves == 3


@pytest.mark.parametrize("stack", [DiscardsCaches, KeepsTheFirst])
def test_a_stack_whose_caches_are_lost_fails_at_the_layers(stack: type[Stack]) -> None:
    report = check(case_of(stack))
    found = report.check("collections")
    assert found.status == "fail", report.to_json()
    assert "cache/layers/cached_key: " in " ".join(found.details)


def test_a_lift_that_is_not_told_of_caches_names_one() -> None:
    report = check(case_of(ScansWithoutCaches))
    assert report.check("collections").status == "fail"
    line = "the variable 'cached_key' is of collection 'cache', which the loop does not lift"
    assert line in report.check("collections").details[0]
