"""Modules of one class in the branches of a test: one stands for the other where both are built alike."""

from __future__ import annotations

import pytest

from tests.sizes.inference import sites, sizes_of

BLOCK = """
import flax.linen as nn

class Block(nn.Module):
    width: int
    def setup(self):
        self.inner = nn.Dense(self.width)
        self.outer = nn.Dense(2 * self.width)
    def __call__(self, x):
        return self.outer(self.inner(x))
"""


MODEL = """
class Model(nn.Module):
    width: int
    is_lean: bool
    def setup(self):
        if self.is_lean:
            self.blocks = [nn.remat(Block)(self.width, name=f"a{i}") for i in range(3)]
        else:
            self.blocks = [OTHER for j in range(3)]
        self.head = nn.Dense(3)
    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
"""


@pytest.mark.parametrize(
    ("other", "last"),
    [
        ("Block(self.width, name=f'b{j}')", "2 * self.width"),
        ("Block(4)", "2 * self.width if self.is_lean else 8"),
    ],
)
def test_both_get_their_sizes(other: str, last: str) -> None:
    found = list(sites(sizes_of(BLOCK + MODEL.replace("OTHER", other))).values())
    assert found == [{"in_features": "x_features"}] * 2 + [{"in_features": last}]
