"""Modules that a stacked module gets: Linen stacks the variables of those made outside of it, too."""

from __future__ import annotations

import pytest

from nnx_migrate.rewrite.classes import ClassRefusal
from tests.rewrite.classes.support import convert, converted

BLOCK = """\
class Block(nn.Module):
    layers: Sequence[nn.Module] = ()

    @nn.compact
    def __call__(self, x):
        for one in self.layers:
            x = one(x)
        return nn.Dense(4)(x)


"""
SCAN = """nn.scan(lambda m, c, _: (m(c), None), variable_axes={"params": 0}, split_rngs={"params": True}, length=2)"""
VMAP = """nn.vmap(lambda m, c: m(c), in_axes=0, variable_axes={"params": 0}, split_rngs={"params": True})"""
COMPACT = f"""\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x, _ = {SCAN}(Block(layers=[nn.Dense(4)]), x, None)
        return x
"""
LOCAL = f"""\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        inner = nn.Dense(4)
        return {VMAP}(Block(layers=[inner]), x)
"""
SETUP = f"""\
class Model(nn.Module):
    def setup(self):
        self.inner = nn.Dense(4)
        self.block = Block(layers=[self.inner])

    def __call__(self, x):
        x, _ = {SCAN}(self.block, x, None)
        return x
"""


@pytest.mark.parametrize("model", [COMPACT, LOCAL, SETUP])
def test_a_stacked_module_that_gets_one_made_outside_is_refused(model: str) -> None:
    found = convert(BLOCK + model)["Model"]
    assert isinstance(found, ClassRefusal)
    assert "what is made outside and given as 'layers', too" in str(found)


def test_one_that_it_owns_is_built_for_all_layers() -> None:
    own = SETUP.replace("        self.inner = nn.Dense(4)\n", "").replace(
        "self.inner", "nn.Dense(4)"
    )
    assert "lambda rngs: Block(layers=[nnx.Linear(" in converted(BLOCK + own)
