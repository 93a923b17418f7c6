"""Whole modules with scanned classes: rewritten, run, and compared with Linen's as programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import compare, lazy, migrated, refused, same_in_auto

HEADER = """\
import functools
import flax.linen as nn
import jax
import jax.numpy as jnp


class Block(nn.Module):
    width: int
    train: bool = False

    @nn.compact
    def __call__(self, x, scale):
        h = nn.Dense(self.width)(nn.LayerNorm()(x))
        h = nn.BatchNorm()(h, use_running_average=not self.train)
        h = nn.Dropout(0.3)(nn.relu(h), deterministic=not self.train)
        return x + nn.Dense(x.shape[-1])(h) * scale, h.mean()


class Cell(nn.Module):
    width: int

    @nn.compact
    def __call__(self, carry, x):
        h = nn.tanh(nn.Dense(self.width)(jnp.concatenate([carry, x], -1)))
        return h, nn.Dense(3)(h)

    def start(self, batch):
        return jnp.zeros((batch, self.width))


class Head(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(nn.relu(nn.Dense(self.width)(x)))


"""
STACKED = """variable_axes={"params": 0, "batch_stats": 0},
        split_rngs={"params": True, "dropout": True}, in_axes=nn.broadcast"""
X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
STEPS = np.random.default_rng(1).normal(size=(2, 5, 6)).astype(np.float32)
SCALE = np.full((2, 1), 0.7, np.float32)
TRAINING = {"rngs": {"dropout": 1}, "collections": ("batch_stats",)}

CASES: dict[str, tuple[str, str, dict[str, Any], tuple[Any, ...], dict[str, Any]]] = {
    "over layers, directly, remat inside": (
        f"""\
class Model(nn.Module):
    depth: int

    @nn.compact
    def __call__(self, x, scale):
        x = nn.Dense(4)(x)
        x, means = nn.scan(nn.remat(Block, prevent_cse=False), {STACKED}, length=self.depth)(
            8, name="layers"
        )(x, scale)
        return nn.Dense(2)(x), means
""",
        "Model(3)",
        {"in_features": 6},
        (X, SCALE),
        {},
    ),
    "over layers, by a local name, in training": (
        f"""\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x, scale, train):
        ScanBlock = nn.scan(Block, {STACKED}, length=3)
        x, means = ScanBlock(8, train)(x, scale)
        return x, means
""",
        "Model()",
        {"in_features": 6},
        (X, SCALE, True),
        TRAINING,
    ),
    "over layers, by a name of the module, another axis, lazily in a loop": (
        f"""\
Layers = nn.scan(Block, {STACKED.replace('"params": 0', '"params": 1')}, length=3)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x, scale):
        for i in range(2):
            x, means = Layers(8, name=f"stage_{{i}}")(x, scale)
        return x, means
""",
        "Model()",
        {},
        (X, SCALE),
        {},
    ),
    "in setup, remat chosen by a flag": (
        f"""\
class Model(nn.Module):
    remat: bool

    def setup(self):
        block = nn.remat(Block) if self.remat else Block
        self.dense_layers = nn.scan(block, {STACKED}, length=2)(8)
        self.moe_layers = nn.scan(block, {STACKED}, length=3)(width=16)

    def __call__(self, x, scale):
        x, _ = self.dense_layers(x, scale)
        return self.moe_layers(x, scale)
""",
        "Model(True)",
        {"x_features": 6, "moe_layers_in_features": 6},
        (X, SCALE),
        {},
    ),
    "over time": (
        """\
class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        cell = nn.scan(Cell, variable_broadcast="params", split_rngs={"params": False},
                       in_axes=1, out_axes=1, reverse=True)(self.width)
        carry, ys = cell(cell.start(x.shape[0]), x)
        return nn.Dense(2)(ys), carry
""",
        "Model(4)",
        {"in_features": 6},
        (STEPS,),
        {},
    ),
    "a layer for every step, of a partial": (
        """\
class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        cells = nn.scan(functools.partial(Cell, width=self.width), variable_axes={"params": 0},
                        split_rngs={"params": True}, in_axes=1, out_axes=-1, length=5)
        carry, ys = cells()(jnp.zeros((x.shape[0], self.width)), x)
        return ys, nn.Dense(2)(carry)
""",
        "Model(4)",
        {"in_features": 6},
        (STEPS,),
        {},
    ),
    "an ensemble": (
        """\
class Model(nn.Module):
    size: int

    @nn.compact
    def __call__(self, x):
        Ensemble = nn.vmap(Head, variable_axes={"params": 0}, split_rngs={"params": True},
                           in_axes=None, out_axes=0, axis_size=self.size)
        heads = Ensemble(5)(nn.Dense(7)(x))
        shared = nn.vmap(Head, variable_axes={"params": None}, split_rngs={"params": False})(4)
        return nn.Dense(2)(heads), shared(heads)
""",
        "Model(3)",
        {"in_features": 6},
        (X,),
        {},
    ),
}


# Below remat in a scan, where statistics change, both sides keep other values for the gradient: another program, which
# rounds otherwise.
WITHOUT_STATISTICS = HEADER.replace(
    "        h = nn.BatchNorm()(h, use_running_average=not self.train)\n", ""
)


@pytest.mark.parametrize("case", CASES)
def test_the_rewritten_model_is_the_same_program(case: str) -> None:
    source, model, sizes, inputs, options = CASES[case]
    header = WITHOUT_STATISTICS if "remat" in case else HEADER
    report = compare(header + source, model, sizes, inputs, **options)
    assert report.verdict in ("identical", "equal_by_rules"), report
    assert report.check("program").status == "pass"


LATE = """\
class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        y = nn.Dense(x.shape[-1])(x)
        {made}
        return y, None


class Outer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return Block()(x, None)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        stacked = {{"params": 0, "stats": 0}}
        return nn.scan({lifted}, variable_axes=stacked, split_rngs={{"params": True}}, length=3)()(x, None)[0]
"""


@pytest.mark.parametrize("lifted", ["Block", "Outer"])
def test_a_variable_that_only_the_scanned_call_can_make_keeps_its_classes_linen(
    lifted: str,
) -> None:
    made = "self.variable('stats', 'y', lambda: y)"
    found = refused(LINEN + LATE.format(made=made, lifted=lifted))
    assert "makes a variable in every call" in found


def test_one_that_only_some_calls_make_may_be_scanned() -> None:
    made = "if self.is_mutable_collection('stats'):\n            self.variable('stats', 'y', lambda: y)"
    assert "nnm.scan(" in migrated(LINEN + LATE.format(made=made, lifted="Block"))


PERTURBED = """

class Base(nn.Module):
    def mark(self, x):
        return self.perturb("h", x)


class Inner(Base):
    @nn.compact
    def __call__(self, x):
        return self.mark(nn.Dense(4)(x))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Inner()(x)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return {lifted}()(x)


def model():
    return Model()
"""


@pytest.mark.parametrize(
    "lifted",
    [
        "nn.remat(Block)",
        "nn.remat(Inner)",
        "nn.vmap(Block, variable_axes={'params': 0}, split_rngs={'params': True})",
    ],
)
def test_a_lifted_class_that_perturbs_values_keeps_its_parent_linen(lifted: str) -> None:
    source = LINEN + PERTURBED.format(lifted=lifted)
    assert "self.perturb is called in" in lazy(source, "Model")
    same_in_auto(source, "model()", np.ones((2, 4), np.float32))


def test_a_class_that_perturbs_values_is_explicit_where_nothing_lifts_it() -> None:
    assert "nnm.perturb(" in migrated(LINEN + PERTURBED.format(lifted="Block"))
