"""Lists that only some rounds of a loop fill: looped over, or read in the same rounds of another loop."""

from __future__ import annotations

import pytest

from tests.rewrite.running import in_auto, printed_alike

PROGRAM = """\
import jax
import jax.numpy as jnp
from flax import linen as nn


class Part(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.PReLU()(x)


class M(nn.Module):
    sizes: tuple = (4, 5, 6)

    def setup(self):
        n = len(self.sizes)
        parts = []
        for i in range(n):
            if {test}:
                parts.append(Part())
        self.parts = parts

    def __call__(self, x):
        n = len(self.sizes)
        {body}
        return x


def main():
    x = jnp.arange(8.0).reshape(2, 4) - 3
    for sizes in ((4, 5, 6), (4,)):
        variables = M(sizes).init(jax.random.key(0), x)
        print(jax.tree.map(jnp.shape, variables))
        print(jax.jit(M(sizes).apply)(variables, x))
"""


def form(body: str, test: str = "i < n - 1") -> str:
    """The form of M, when the program printed the same."""
    return printed_alike(PROGRAM.format(test=test, body=body))["m.M"]


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(n):\n            if i < n - 1:\n                x = self.parts[i](x)",
        "for step in range(len(self.sizes)):\n            if step < n - 1:\n                x = x + self.parts[step](x)",
        "for part in self.parts:\n            x = part(x)",
    ],
)
def test_rounds_that_meet_each_item_build_the_list(body: str) -> None:
    assert form(body) == "explicit"


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(n):\n            if i < n - 2:\n                x = self.parts[i](x)",
        "for i in range(n - 1):\n            if i < n - 2:\n                x = self.parts[i](x)",
        "for i in range(n - 2):\n            x = self.parts[i](x)",
        "for i in range(n):\n            if i < n - 1:\n                break",
        "for i in range(n):\n            if i < n - 1:\n                x = self.parts[0](x)",
        "x = self.parts[0](x) if n > 1 else x",
    ],
)
def test_items_that_rounds_may_not_meet_are_made_by_their_calls(body: str) -> None:
    assert form(body) == "explicit"
    text = in_auto(PROGRAM.format(test="i < n - 1", body=body))
    assert "parts.append(lazy(Part)())" in text


def test_rounds_beside_numbers_that_may_be_fewer_keep_the_class_lazy() -> None:
    body = "for part, size in zip(self.parts, self.sizes):\n            x = part(x) * size"
    assert form(body) == "lazy"
