"""Initial values that repeat although they are random: the sign of a key that is shared."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.parity import ParityCase
from nnx_migrate.parity.evaluation.initial_values import repetitions
from nnx_migrate.parity.run import judge
from nnx_migrate.parity.sides.linen import evaluate_linen
from nnx_migrate.parity.sides.nnx import evaluate_nnx

X = np.ones((2, 3), np.float32)
NORMAL = nn.initializers.normal()


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def stacked(seed: int, axis: int) -> np.ndarray:
    """Three layers of the same values."""
    return np.stack([drawn(seed, 2, 4)] * 3, axis)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_layers_that_are_alike_are_told_along_whatever_axis_they_stand(axis: int) -> None:
    values, others = {"params/w": stacked(0, axis)}, {"params/w": stacked(1, axis)}
    assert repetitions(values, others) == (f"params/w: every slice along axis {axis} is the same",)


@pytest.mark.parametrize(
    "value",
    [
        drawn(0, 3, 4),
        drawn(0, 1, 4),
        np.zeros((3, 4), np.float32),
        np.eye(3, dtype=np.float32),
        drawn(0, 4),
    ],
)
def test_other_values_do_not_repeat(value: np.ndarray) -> None:
    assert repetitions({"params/w": value}, {"params/w": value + 1}) == ()


def test_what_is_the_same_under_every_key_is_not_random() -> None:
    assert repetitions({"params/w": stacked(0, 1)}, {"params/w": stacked(0, 1)}) == ()


def test_two_variables_of_one_key_are_told() -> None:
    values = {"params/a": drawn(0, 3, 4), "params/b": drawn(0, 3, 4)}
    others = {"params/a": drawn(1, 3, 4), "params/b": drawn(1, 3, 4)}
    assert repetitions(values, others) == ("params/b = params/a",)


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        return nn.Dense(3)(x), None


class Stack(nn.Module):
    splits: bool

    @nn.compact
    def __call__(self, x: Any) -> Any:
        lift = {"split_rngs": {"params": self.splits}, "length": 2}
        return nn.scan(Layer, variable_axes={"params": 0}, **lift)(name="s")(x, None)[0]


class NnxLayer(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(3, 3, rngs=rngs)

    def __call__(self, x: Any, _: Any) -> Any:
        return self.Dense_0(x), None


class NnxStack(nnx.Module):
    def __init__(self, splits: bool, rngs: nnx.Rngs) -> None:
        lift: Any = {"split_rngs": {"params": splits}, "length": 2}
        self.s = nnm.scan(NnxLayer, variable_axes={"params": 0}, **lift)(rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.s(x, None)[0]


class Target(nn.Module):
    """Keeps a copy of its weight, as a momentum encoder does."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        weight = self.param("weight", NORMAL, (3, 3))
        return x @ (weight - self.variable("target", "weight_", lambda: weight).value)


TARGET: Any = nnx.variable_type_from_name("target", allow_register=True)


class NnxTarget(nnx.Module):
    def __init__(self, copies: bool, rngs: nnx.Rngs) -> None:
        weight = NORMAL(rngs.params(), (3, 3))
        self.weight = nnx.Param(weight)
        self.weight_ = TARGET(weight if copies else NORMAL(rngs.params(), (3, 3)))

    def __call__(self, x: Any) -> Any:
        return x @ (self.weight[...] - self.weight_[...])


def of_initial_values(linen: nn.Module, make: Any) -> Any:
    case = ParityCase(linen=linen, nnx=make, inputs=(X,))
    sides = evaluate_linen(case, numbers=False), evaluate_nnx(case, numbers=False)
    return judge(case, *sides).check("init_values")


@pytest.mark.parametrize(
    ("splits", "layers"), [(False, True), (True, False), (True, True), (False, False)]
)
def test_layers_that_start_alike_on_one_side_only_are_different(splits: bool, layers: bool) -> None:
    found = of_initial_values(Stack(splits), lambda rngs: NnxStack(layers, rngs))
    side, path = "NNX" if splits else "Linen", "params/s/Dense_0/kernel"
    line = f"only {side} repeats itself: {path}: every slice along axis 0 is the same"
    expected = () if splits == layers else (f"under real keys {line}",)
    assert found.details == expected


@pytest.mark.parametrize("copies", [False, True])
def test_a_copy_of_a_parameter_has_to_be_one_on_both_sides(copies: bool) -> None:
    found = of_initial_values(Target(), lambda rngs: NnxTarget(copies, rngs))
    line = "only Linen repeats itself: target/weight_ = params/weight"
    assert found.details == (() if copies else (f"under real keys {line}",))
