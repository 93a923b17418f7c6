"""Inputs beside the case's own: conditions that those do not reach."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate.parity import ParityCase, check
from nnx_migrate.parity.evaluation.other_inputs import other_inputs

IMAGE = np.random.default_rng(0).uniform(size=(2, 5)).astype(np.float32)
TOKENS = np.arange(5, dtype=np.int32)
ALL = np.ones(5, bool)


class Model(nn.Module):
    @nn.compact
    def __call__(self, image: Any, tokens: Any, mask: Any) -> Any:
        return nn.Dense(3)(image)


class NnxModel(nnx.Module):
    def __init__(self, condition: Any, rngs: nnx.Rngs) -> None:
        self.Dense_0 = nnx.Linear(5, 3, rngs=rngs)
        self.condition = condition

    def __call__(self, image: Any, tokens: Any, mask: Any) -> Any:
        out = self.Dense_0(image)
        return jnp.where(self.condition(image, tokens, mask), 2 * out, out)


@pytest.mark.parametrize(
    ("condition", "line"),
    [
        (lambda image, tokens, mask: image.max() > 100, "with float inputs times 1000: output: "),
        (lambda image, tokens, mask: image.min() < 0, "with float inputs times -1000: output: "),
        (
            lambda image, tokens, mask: tokens[0] > tokens[-1],
            "with integer inputs reversed and boolean ones inverted: output: ",
        ),
        (
            lambda image, tokens, mask: ~mask.any(),
            "with integer inputs reversed and boolean ones inverted: output: ",
        ),
        (lambda image, tokens, mask: image.max() > 1e9, None),
    ],
)
def test_what_only_other_inputs_reach_is_a_difference(condition: Any, line: str | None) -> None:
    report = check(
        ParityCase(
            linen=Model(),
            nnx=lambda rngs: NnxModel(condition, rngs),
            inputs=(IMAGE, TOKENS, ALL),
        )
    )
    found = report.check("forward")
    assert [one.startswith(line) for one in found.details] == [True] if line else not found.details


def test_only_inputs_that_change_are_run() -> None:
    assert not other_inputs([jnp.int32(3)])
    assert list(other_inputs([jnp.zeros(3)])) == [
        "with float inputs times -1000",
        "with float inputs times 1000",
    ]
    (found,) = other_inputs([jnp.array([1, 2, 3]), jnp.array(True)]).values()
    np.testing.assert_array_equal(found[0], [3, 2, 1])
    assert not found[1]
