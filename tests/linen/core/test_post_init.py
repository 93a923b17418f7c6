"""What ``__post_init__`` of an explicit class refuses, its lazy form refuses where it is made."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from nnx_migrate import linen as nn


class Heads(nnx.Module):
    def __init__(self, width: int, heads: int = 1, *, in_features: int, rngs: nnx.Rngs):
        self.width = width
        self.heads = heads
        self.__post_init__()
        self.dense = nnx.Linear(in_features, self.total, rngs=rngs)

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide {self.width}")
        self.total = self.per_head() * self.heads

    def per_head(self) -> int:
        return self.width // self.heads

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.dense(x)


class Even(Heads):
    """The constructor of its base runs the whole chain."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.total % 2:
            raise ValueError("odd")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.lazy(Heads)(5, 2), "2 heads do not divide 5"),
        (lambda: nn.lazy(Heads)(4, 2).clone(width=5), "2 heads do not divide 5"),
        (lambda: nn.lazy(Even)(5), "odd"),
    ],
)
def test_fields_are_refused_where_the_module_is_made(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("cls", [Heads, Even])
def test_the_fields_stay_as_they_were_given(cls: Any) -> None:
    module = nn.lazy(cls)(4, heads=2)
    kernel = module.init(jax.random.key(0), jnp.ones((1, 3)))["params"]["dense"]["kernel"]
    assert kernel.shape == (3, 4)
    assert (module.width, module.heads, module) == (4, 2, nn.lazy(cls)(4, 2))
