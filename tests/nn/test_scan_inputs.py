"""Collections that a scan only reads: ``In`` of an axis, Linen's ``ScanIn``."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from flax.typing import In

from nnx_migrate import nn as nnm

X = jnp.arange(8.0).reshape(2, 4)


class Layer(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.mix = nnx.Linear(4, 4, rngs=rngs)
        self.seen = nnm.variable("counts", jnp.zeros(()))

    def __call__(self, x: Any, count: Any) -> Any:
        if count is not None:
            self.seen[...] += count
        return self.mix(x), None


def stack(**axes: Any) -> Any:
    options: dict[str, Any] = {
        "split_rngs": {"params": True},
        "length": 3,
        "in_axes": nnm.broadcast,
    }
    return nnm.scan(Layer, variable_axes=axes, **options)(rngs=nnx.Rngs(0))


def test_an_input_is_stacked_and_read_along_its_axis() -> None:
    plain, read = stack(params=1, counts=0), stack(params=In(1), counts=In(0))
    assert read.mix.kernel.shape == plain.mix.kernel.shape == (4, 3, 4)
    np.testing.assert_array_equal(read(X, None)[0], plain(X, None)[0])


def test_an_input_that_the_body_changes_is_an_error_as_in_linen() -> None:
    changed = stack(params=In(0), counts=0)
    changed(X, 1.0)
    np.testing.assert_array_equal(changed.seen[...], np.ones(3))
    with pytest.raises(
        ValueError, match=r"changed the variable 'seen', whose collection is an input"
    ):
        stack(params=0, counts=In(0))(X, 1.0)
