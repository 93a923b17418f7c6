"""Initial values that repeat although they are random: the sign of a key that is shared."""

from __future__ import annotations

import numpy as np
import pytest

from nnx_migrate.parity.evaluation.initial_values import repetitions


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
