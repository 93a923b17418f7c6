"""Lists whose items are lists of submodules: where a call takes some of them, Linen makes no others."""

from __future__ import annotations

import pytest

from tests.rewrite.running import printed_alike

SOURCE = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    depths: tuple = (1, 2, 1)

    def setup(self):
        self.parts = PARTS

    def __call__(self, x, k):
        CALL


def main():
    x = jnp.ones((2, 3)) / 3
    for k in (0, 2):
        variables = Net().init(jax.random.key(0), x, k)
        print(jax.tree.map(jnp.sum, variables), Net().apply(variables, x, k))
"""
PAIRS = "[[nn.Dense(3), nn.LayerNorm()] for _ in range(3)]"
CASES = {
    "lists of several lengths": (
        "[[nn.LayerNorm() for _ in range(depth)] for depth in self.depths]",
        "for part in self.parts[k]:\n    x = part(x)\nreturn x",
    ),
    "dicts": (
        '[{"one": nn.Dense(3), "other": nn.LayerNorm()} for _ in range(3)]',
        'return self.parts[k]["other"](self.parts[k]["one"](x))',
    ),
    "pairs": (PAIRS, "one, other = self.parts[k]\nreturn other(one(x))"),
    "a part of them": (
        PAIRS,
        "for pair in self.parts[: k + 1]:\n    for part in pair:\n        x = part(x)\nreturn x",
    ),
    "the first ones": (
        PAIRS,
        "for i in range(k + 1):\n    for part in self.parts[i]:\n        x = part(x)\nreturn x",
    ),
    "the last and the first": (PAIRS, "return self.parts[-1][1](self.parts[0][0](x))"),
    "all of them": (
        PAIRS,
        "for i in range(len(self.parts)):\n    for part in self.parts[i]:\n        x = part(x)\nreturn x",
    ),
}


@pytest.mark.parametrize(("parts", "call"), CASES.values(), ids=CASES)
def test_what_no_call_reaches_is_not_made(parts: str, call: str) -> None:
    call = call.replace("\n", "\n        ")
    printed_alike(SOURCE.replace("PARTS", parts).replace("CALL", call))
