"""``nnm.with_fields``: a module with other plain attributes for one call."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from nnx_migrate import nn as nnm


class Scaled(nnx.Module):
    def __init__(self, train: bool | None, *, rngs: nnx.Rngs) -> None:
        self.train = train
        self.inner = nnx.Linear(2, 2, rngs=rngs)
        self.seen = nnx.BatchStat(jnp.zeros(()))
        self.table = nnx.data([1, 2])

    def __call__(self, x: Any) -> Any:
        self.seen.set_value(self.seen[...] + 1)
        return self.inner(x) * (2 if self.train else 1)


def test_the_field_is_set_for_the_view_alone_and_variables_are_shared() -> None:
    module = Scaled(None, rngs=nnx.Rngs(0))
    x = jnp.ones((1, 2))
    assert bool((nnm.with_fields(module, train=True)(x) == 2 * module.inner(x)).all())
    assert module.train is None
    assert float(module.seen[...]) == 1
    assert nnm.with_fields(module, train=True).inner is module.inner


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"traim": True}, AttributeError, "to have the field 'traim', found .*'train'"),
        ({"inner": None}, ValueError, "Scaled.inner holds data"),
        ({"seen": 1}, ValueError, "Scaled.seen holds data"),
    ],
)
def test_only_plain_fields_that_exist_are_set(
    fields: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        nnm.with_fields(Scaled(None, rngs=nnx.Rngs(0)), **fields)
