"""Classes whose bases stand in another file, with loops, conditions and lists of layers in these."""

from __future__ import annotations

import pytest

from tests.rewrite.running import files_printed_alike

HEAD = """\
import flax.linen as nn


class Block(nn.Module):
    features: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.features)(x)


class Base(nn.Module):
    rounds: int = 2
    wide: bool = False

"""
LOOP = """\
    def setup(self):
        self.block = Block()
        if self.wide:
            self.more = Block(3)

    def __call__(self, x):
        for _ in range(self.rounds):
            x = self.block(x)
        return self.more(x) if self.wide else x
"""
TOGETHER = """\
    def setup(self):
        self.block, self.more = Block(), Block(3)

    def __call__(self, x):
        for _ in range(self.rounds):
            x = self.block(x)
        return self.more(x)
"""
LISTED = """\
    def setup(self):
        self.blocks = [Block() for _ in range(self.rounds)]

    def __call__(self, x):
        return self.blocks[0](x) if self.wide else self.blocks[1](self.blocks[0](x))
"""
MAIN = """\
import jax
import jax.numpy as jnp
from base import Base


class Net(Base):
    rounds: int = 3


class Wide(Base):
    wide: bool = True


def main():
    x = jnp.ones((2, 3))
    for net in (Net(), Wide(), Base(), Net(wide=True), Net(rounds=0) if NONE else Net()):
        made = net.init(jax.random.key(0), x)
        print(sorted(jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(made)))
        print(net.apply(made, x))
"""


@pytest.mark.parametrize(
    ("body", "has_none", "form"),
    [(LOOP, True, "explicit"), (TOGETHER, True, "explicit"), (LISTED, False, "lazy")],
    ids=["loop", "together", "listed"],
)
def test_a_base_in_another_file_is_read_as_one_in_this_file(
    body: str, has_none: bool, form: str
) -> None:
    files = {"base.py": HEAD + body, "m.py": MAIN.replace("NONE", str(has_none))}
    apart = files_printed_alike(files)
    head, main = files.values()
    together = files_printed_alike(
        {"m.py": head + "\n" + main.replace("from base import Base", "")}
    )
    assert {name.split(".")[-1]: form for name, form in apart.items()} == {
        name.split(".")[-1]: form for name, form in together.items()
    }
    assert apart["m.Net"] == form
