"""Rare idioms have no explicit form: their classes are lazy, for a reason in a line, and give the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.rewrite.running import lazy, same_in_auto

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
IMPORTS = "from typing import Any\nimport flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n"

LAMBDA = """
class Block(nn.Module):
    make: Any

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(self.make()(x))


class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return Block(make=lambda: nn.Dense(self.width))(x)
"""

IDIOMS: list[tuple[str, str, tuple[Any, ...], str]] = [
    (LAMBDA, "Model(3)", (X,), "something is built inside a lambda"),
]


@pytest.mark.parametrize(("program", "model", "inputs", "reason"), IDIOMS)
def test_it_is_lazy_and_gives_linens_bits(
    program: str, model: str, inputs: tuple[Any, ...], reason: str
) -> None:
    assert lazy(IMPORTS + program, "Model") == reason
    same_in_auto(IMPORTS + program, model, *inputs)
