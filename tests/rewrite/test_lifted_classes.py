"""Classes whose name stands for a lifted version: decorated ones, and names that are bound anew."""

from __future__ import annotations

import numpy as np
import pytest

from nnx_migrate.model import Form
from tests.rewrite.projects import LINEN, outcomes, rewrite, rewrite_in_form, texts
from tests.rewrite.running import compare, lazy, migrated, refused, same_in_auto

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
BLOCK = """\
class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


"""
REMAT = "Block = nn.remat(Block)\n\n\n"
VMAP = (
    "Block = nn.vmap(Block, in_axes=None, out_axes=-1, axis_size=3, variable_axes={'params': 0},"
    " split_rngs={'params': True})\n\n\n"
)
MODEL = """\
class Model(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(Block(self.width)(x))
"""


@pytest.mark.parametrize(
    ("block", "name"),
    [
        pytest.param(BLOCK + REMAT, "CheckpointBlock_0", id="bound anew"),
        pytest.param("@nn.remat\n" + BLOCK, "CheckpointBlock_0", id="decorated"),
        pytest.param(
            BLOCK + 'class Other:\n    pass\n\n\n"""Text."""\n' + REMAT,
            "CheckpointBlock_0",
            id="not at once",
        ),
    ],
)
def test_a_submodule_has_the_name_of_the_lifted_class(block: str, name: str) -> None:
    source = LINEN + block + MODEL
    assert f"self.{name} = Block(self.width, in_features=in_features, rngs=rngs)" in migrated(
        source
    )
    report = compare(source, "Model()", {"in_features": 6}, (X,))
    report.raise_if_different()


def test_calls_go_through_the_axes_of_the_lifted_class() -> None:
    source = LINEN + BLOCK + VMAP + MODEL
    assert "self.VmapBlock_0 = Block(" in migrated(source)
    sizes = {"x_features": 6, "Dense_0_in_features": 3}
    compare(source, "Model()", sizes, (X,)).raise_if_different()


def test_class_valued_fields_hold_the_lifted_class() -> None:
    user = MODEL.replace("    width", "    kind: type = Block\n    width", 1)
    user = user.replace("(Block(", "(self.kind(")
    compare(LINEN + BLOCK + REMAT + user, "Model()", {"in_features": 6}, (X,)).raise_if_different()


def test_a_class_may_inherit_from_a_checkpointed_one() -> None:
    heir = "class Heir(Block):\n    pass\n\n\n"
    source = LINEN + BLOCK + REMAT + heir + MODEL.replace("Block(", "Heir(")
    assert "self.Heir_0 = Heir(" in migrated(source)
    compare(source, "Model()", {"in_features": 6}, (X,)).raise_if_different()


def test_a_class_that_inherits_lifted_axes_stays_linen() -> None:
    heir = "class Heir(Block):\n    pass\n\n\n"
    assert "lifted over axes" in refused(LINEN + BLOCK + VMAP + heir, "Heir")


@pytest.mark.parametrize(
    "rebound",
    [
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
def test_other_bindings_of_its_name_keep_a_class_and_its_users_linen(rebound: str) -> None:
    files = {
        "m.py": f"{LINEN}from lib import FLAG, register, unknown\n\n{BLOCK}{rebound}\n\n{MODEL}"
    }
    result = rewrite(files)
    assert outcomes(result) == {"m.Block": "refused", "m.Model": "refused"}
    assert texts(result, files) == files


@pytest.mark.parametrize(
    ("made", "form"), [("nn.remat(Block, **{})", Form.EXPLICIT), ("unknown(Block)", Form.LAZY)]
)
def test_a_class_is_lazy_where_its_name_may_mean_another(made: str, form: Form) -> None:
    text = f"{LINEN}from lib import unknown\n\n{BLOCK}Block = {made}\n\n{MODEL}"
    forms = {one.name: one.form for one in rewrite_in_form({"m.py": text}, "auto").classes}
    assert forms == {"m.Block": form, "m.Model": Form.LAZY}


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


@pytest.mark.parametrize("model", MADE.values(), ids=MADE)
def test_what_stacks_a_submodule_made_elsewhere_is_lazy(model: str) -> None:
    source = LINEN + HOLDER + model + "\n\ndef model():\n    return Model()\n"
    assert "a lift stacks its variables" in lazy(source, "Model")
    same_in_auto(source, "model()", X)
