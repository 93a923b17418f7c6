"""Which stream a draw comes from: each has a key of its own, on both sides the same."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import linen as lazy
from nnx_migrate import nn as nnm
from nnx_migrate.parity import ParityCase, check
from nnx_migrate.parity.evaluation.constant_key import constant_key

KEY = jax.random.key(5)
X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def bits(key: Any) -> list[int]:
    return [int(word) for word in jax.random.key_data(key)]


class Key(nn.Module):
    @nn.compact
    def __call__(self, name: str) -> Any:
        return self.make_rng(name)


class LazyKey(lazy.Module):
    @lazy.compact
    def __call__(self, name: str) -> Any:
        return self.make_rng(name)


def test_a_stream_of_the_case_has_a_key_of_its_own_on_both_sides() -> None:
    rngs = {"noise": jax.random.key(0), "gumbel": jax.random.key(1)}
    with constant_key(KEY, ("params", "noise", "gumbel"), drawn := set[str]()):
        linen = [bits(Key().apply({}, name, rngs=rngs)) for name in rngs]
        other = [bits(LazyKey().apply({}, name, rngs=rngs)) for name in rngs]
        streams = nnx.Rngs(0, **rngs)
        theirs = [bits(streams[name]()) for name in rngs]
    assert linen == other == theirs
    assert drawn == {"noise", "gumbel"}
    assert len({*map(tuple, linen), tuple(bits(KEY))}) == 3


def test_what_is_no_stream_of_the_case_falls_back_on_both_sides() -> None:
    rngs = {"params": jax.random.key(0)}
    with constant_key(KEY, ("params", "dropout"), drawn := set[str]()):
        assert bits(Key().apply({}, "noise", rngs=rngs)) == bits(KEY)
        assert bits(LazyKey().apply({}, "noise", rngs=rngs)) == bits(KEY)
        assert bits(nnx.Rngs(0, params=1).noise()) == bits(KEY)
    assert drawn == {"noise", "default"}


class Noisy(nn.Module):
    names: tuple[str, ...] = ("dropout", "noise")

    @nn.compact
    def __call__(self, x: Any) -> Any:
        first, second = map(self.make_rng, self.names)
        return nn.Dense(4)(x * jax.random.normal(first, x.shape)) + jax.random.normal(
            second, x.shape
        )


class NnxNoisy(nnx.Module):
    def __init__(self, names: tuple[str, ...], rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(4, 4, rngs=rngs)
        self.rngs = rngs
        self.names = names

    def __call__(self, x: Any) -> Any:
        first, second, *_ = (self.rngs[name]() for name in self.names)
        return self.Dense_0(x * jax.random.normal(first, x.shape)) + jax.random.normal(
            second, x.shape
        )


def report_on(
    ours: tuple[str, ...], theirs: tuple[str, ...], rngs: dict[str, int] | None = None
) -> Any:
    rngs = {"dropout": 0, "noise": 1} if rngs is None else rngs
    return check(
        ParityCase(
            linen=Noisy(ours), nnx=lambda rngs: NnxNoisy(theirs, rngs), inputs=(X,), rngs=rngs
        )
    )


@pytest.mark.parametrize(
    ("theirs", "line"),
    [
        (("dropout", "dropout"), "only the Linen side draws from noise"),
        (("dropout", "gumbel"), "only the Linen side draws from noise, the other from default"),
        (("noise", "dropout"), "outputs: output: "),
    ],
)
def test_another_stream_is_a_difference(theirs: tuple[str, ...], line: str) -> None:
    found = report_on(("dropout", "noise"), theirs)
    assert found.verdict == "different"
    assert found.check("rng").details[0].startswith(line)
    assert not [one for one in found.not_checked if one.startswith("rng")]


@pytest.mark.parametrize(
    ("ours", "theirs", "rngs"),
    [
        (("dropout", "noise"), ("dropout", "noise"), None),
        # Linen falls back to `params`, NNX to `default`.
        (("dropout", "gumbel"), ("dropout", "gumbel"), {"params": 0, "dropout": 1}),
        (("dropout", "params"), ("dropout", "default"), {"params": 0, "dropout": 1}),
    ],
)
def test_the_same_streams_are_not(ours: Any, theirs: Any, rngs: Any) -> None:
    found = report_on(ours, theirs, rngs)
    assert found.check("rng").status == "pass"
    assert found.verdict == "identical"


def test_a_key_that_nothing_is_made_of_is_no_difference() -> None:
    names = ("dropout", "dropout")
    found = report_on(names, (*names, "noise"))
    assert found.verdict == "identical"
    expected = "rng: noise was drawn from on the NNX side only, without effect"
    assert [one for one in found.not_checked if one.startswith("rng")] == [expected]


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        return nn.Dropout(0.5, deterministic=False)(nn.Dense(4)(x)), None


class Stack(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        lift = {"split_rngs": {"params": True}, "length": 2}
        return nn.scan(Layer, variable_axes={"params": 0}, **lift)(name="s")(x, None)[0]


class NnxLayer(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(4, 4, rngs=rngs)
        self.Dropout_0 = nnm.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any, _: Any) -> Any:
        return self.Dropout_0(self.Dense_0(x), deterministic=False), None


class NnxStack(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        lift: Any = {"split_rngs": {"params": True}, "length": 2}
        self.s = nnm.scan(NnxLayer, variable_axes={"params": 0}, **lift)(rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.s(x, None)[0]


def test_a_stream_that_only_linens_lift_takes_from_params_is_no_difference() -> None:
    rngs = {"params": 0, "dropout": 1}
    case = ParityCase(linen=Stack(), nnx=lambda rngs: NnxStack(rngs=rngs), inputs=(X,), rngs=rngs)
    found = check(case)
    assert found.check("rng").status == "pass", found.check("rng").details
