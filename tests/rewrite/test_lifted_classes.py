"""Classes whose name is bound anew, to a lifted version or to anything else, are lazy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrite.projects import LINEN, outcomes, rewrite, texts
from tests.rewrite.running import lazy, same_in_auto

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
BLOCK = """\
class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


"""
MODEL = """\
class Model(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(Block(self.width)(x))
"""


@pytest.mark.parametrize(
    "rebound",
    [
        pytest.param("Block = nn.remat(Block)\n", id="lifted"),
        pytest.param("if FLAG:\n    Block = nn.remat(Block)\n", id="under a condition"),
        pytest.param("Block = nn.remat(Block) if FLAG else Block\n", id="one of two"),
        pytest.param("Kept = Block\nBlock = nn.remat(Block)\n", id="kept under another name"),
        pytest.param("register(Block)\nBlock = nn.remat(Block)\n", id="handed on before"),
        pytest.param("Block = nn.remat(Block)\nBlock = None\n", id="bound to something else"),
        pytest.param("Block, Other = nn.remat(Block), 1\n", id="unpacked"),
        pytest.param("for Block in [Block]:\n    pass\n", id="in a loop"),
        pytest.param(
            "Block = nn.remat(Block)\ndef change():\n    global Block\n    Block = None\n",
            id="by a function",
        ),
    ],
)
def test_other_bindings_of_its_name_keep_a_class_and_its_users_lazy(rebound: str) -> None:
    files = {
        "m.py": f"{LINEN}from lib import FLAG, register, unknown\n\n{BLOCK}{rebound}\n\n{MODEL}"
    }
    result = rewrite(files)
    assert outcomes(result) == {"m.Block": "refused", "m.Model": "refused"}
    assert texts(result, files) == files


def test_a_lifted_version_of_a_class_that_stays_linen_stays() -> None:
    scanned = "return nn.while_loop(lambda m, c: c.sum() < 9, lambda m, c: c + 1, self, x, **{})"
    stays = BLOCK.replace("return nn.tanh(nn.Dense(self.width)(x))", scanned)
    files = {"m.py": f"{LINEN}{stays}Other = nn.remat(Block)\n"}
    assert texts(rewrite(files), files) == files


HOLDER = """\
class Holder(nn.Module):
    inner: nn.Module

    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(self.inner(x))


Holders = nn.vmap(Holder, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None, axis_size=3)


"""
MADE = {
    "in the call": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Holders(inner=nn.LayerNorm())(x)
""",
    "in setup": """\
class Model(nn.Module):
    def setup(self):
        self.many = Holders(nn.Dense(2))

    def __call__(self, x):
        return self.many(x)
""",
    "before, in setup": """\
class Model(nn.Module):
    def setup(self):
        self.one = nn.Dense(2)
        self.many = Holders(inner=self.one)

    def __call__(self, x):
        return self.many(x)
""",
}


@pytest.mark.parametrize("axes", ["0", "None"])
@pytest.mark.parametrize("model", MADE.values(), ids=MADE)
def test_what_lifts_a_submodule_made_elsewhere_is_lazy(model: str, axes: str) -> None:
    holder = HOLDER if axes == "0" else HOLDER.replace("True", "False")
    source = (
        LINEN
        + holder.replace('"params": 0', f'"params": {axes}')
        + model
        + "\n\ndef model():\n    return Model()\n"
    )
    assert "it is lifted over axes" in lazy(source, "Model")
    same_in_auto(source, "model()", X)
