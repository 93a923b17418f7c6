"""Sites of a call that share a key: one key for all draws makes both sides agree on them."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.parity import ParityCase, check

X = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        return nn.Dropout(0.5, deterministic=False)(nn.Dense(5)(x)), None


class Stack(nn.Module):
    splits: bool

    @nn.compact
    def __call__(self, x: Any) -> Any:
        split_rngs = {"params": True, "dropout": self.splits}
        scanned = nn.scan(Layer, variable_axes={"params": 0}, split_rngs=split_rngs, length=3)
        return scanned(name="layers")(x, None)[0]


class NnxLayer(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(5, 5, rngs=rngs)
        self.Dropout_0 = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any, _: Any) -> Any:
        return self.Dropout_0(self.Dense_0(x), deterministic=False), None


class NnxStack(nnx.Module):
    def __init__(self, splits: bool, rngs: nnx.Rngs) -> None:
        split_rngs = {"params": True, "dropout": splits}
        scanned = nnm.scan(NnxLayer, variable_axes={"params": 0}, split_rngs=split_rngs, length=3)
        self.layers = scanned(rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.layers(x, None)[0]


class Twice(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Dense(5)(nn.Dropout(0.5, deterministic=False)(x))
        return nn.Dropout(0.5, deterministic=False)(x)


class NnxTwice(nnx.Module):
    def __init__(self, shares: bool, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(5, 5, rngs=rngs)
        self.rngs = rngs.dropout.fork()
        self.shares = shares

    def __call__(self, x: Any) -> Any:
        first = self.rngs()
        second = first if self.shares else self.rngs()
        return _dropped(second, self.Dense_0(_dropped(first, x)))


def _dropped(key: Any, x: Any) -> Any:
    kept = jax.random.bernoulli(key, 0.5, x.shape)
    return jax.lax.select(kept, x / 0.5, jnp.zeros_like(x))


def _rng(linen: nn.Module, make: Any) -> Any:
    return check(ParityCase(linen=linen, nnx=make, inputs=(X,), rngs={"dropout": 0})).check("rng")


@pytest.mark.parametrize(("ours", "theirs", "keys"), [(True, False, (3, 1)), (False, True, (1, 3))])
def test_layers_of_a_scan_that_share_a_key_are_different(
    ours: bool, theirs: bool, keys: tuple[int, int]
) -> None:
    found = _rng(Stack(ours), lambda rngs: NnxStack(theirs, rngs))
    assert found.status == "fail"
    text = f"a call makes random numbers of {keys[0]} different keys on the Linen side, of {keys[1]} on the NNX side"
    assert text in found.details


@pytest.mark.parametrize("splits", [True, False])
def test_layers_of_a_scan_that_draw_alike_are_not(splits: bool) -> None:
    found = _rng(Stack(splits), lambda rngs: NnxStack(splits, rngs))
    assert found.status == "pass", found.details


def test_two_masks_of_one_key_are_different() -> None:
    found = _rng(Twice(), lambda rngs: NnxTwice(True, rngs))
    assert found.details[0].startswith(
        "a call makes random numbers of 2 different keys on the Linen side, of 1 on"
    )


def test_two_masks_of_two_keys_are_not() -> None:
    found = _rng(Twice(), lambda rngs: NnxTwice(False, rngs))
    assert found.status == "pass", found.details


class Rewound(NnxTwice):
    """Its stream starts again in every call: what counts the draws is thrown away."""

    def __call__(self, x: Any) -> Any:
        rngs = nnx.clone(self.rngs)
        return _dropped(rngs(), self.Dense_0(_dropped(rngs(), x)))


def test_a_stream_that_does_not_advance_is_a_difference() -> None:
    found = _rng(Twice(), lambda rngs: Rewound(False, rngs))
    assert found.details[0] == "one more call of the NNX model draws 2 of its 2 keys again"
