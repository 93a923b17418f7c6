"""A class that stays Linen gets no NNX layers to build from."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Outcome
from tests.rewrite.projects import explicit_source as rewrite_source

SOURCE = """import flax.linen as nn
from functools import partial
from typing import Any


class Block(nn.Module):
    conv: Any
    width: int

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    @nn.compact
    def __call__(self, x):
        return {built}(x)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        conv = partial(nn.Dense, use_bias=False)
        return Block(conv=conv, width=3)(conv(4)(x))
"""


def reasons(built: str) -> dict[str, str | None]:
    found = rewrite_source(SOURCE.format(built=built)).classes
    return {one.name: one.reason for one in found if one.outcome is Outcome.REFUSED}


def test_the_class_that_hands_layer_classes_to_a_linen_one_is_refused() -> None:
    found = reasons("self.conv(self.width)")
    assert found["source.Model"] == (
        "Block stays Linen and builds layers from 'conv', which would be NNX layers here"
    )


def test_a_field_that_builds_nothing_crosses() -> None:
    assert "source.Model" not in reasons("nn.Dense(self.width)")


HELD = """import flax.linen as nn
from typing import Any


class Cell(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(x)


class Table(nn.Module):
    size: int = 3

    def setup(self):
        self.table = self.size * 2

    def __call__(self, x):
        return x * self.table


class Layer(nn.Module):
    cell: Any
    others: Any = None

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    def __call__(self, x):
        return self.cell(x)


class Model(nn.Module):
    {body}
"""
COMPACT = """@nn.compact
    def __call__(self, x):
        {setup}
        return {built}(x)"""
SETUP = """def setup(self):
        self.cell = Cell()
        self.layer = {built}

    def __call__(self, x):
        return self.layer(x)"""


def held(body: str) -> str | None:
    classes = rewrite_source(HELD.format(body=body)).classes
    return next(one.reason for one in classes if one.name == "source.Model")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (COMPACT.format(setup="pass", built="Layer(Cell())"), "cell"),
        (COMPACT.format(setup="pass", built="Layer(nn.Dense(4))"), "cell"),
        (COMPACT.format(setup="inner = Cell()", built="Layer(cell=inner)"), "cell"),
        (COMPACT.format(setup="pass", built="Layer(nn.relu, [Cell()])"), "others"),
        (SETUP.format(built="Layer(self.cell)"), "cell"),
    ],
)
def test_the_class_that_hands_a_submodule_to_a_linen_one_is_refused(body: str, field: str) -> None:
    assert held(body) == (
        f"Layer stays Linen and gets a submodule as {field!r}, which would be an NNX one here"
    )


def test_the_class_that_hands_a_submodule_in_a_dict_to_a_linen_one_is_refused() -> None:
    reason = held(SETUP.format(built="Layer(None, others={'a': Cell()})")) or ""
    assert reason.startswith("no call seen here reaches it")  # the bridge hides those of Layer


@pytest.mark.parametrize("built", ["Layer(nn.relu)", "Layer(Table(), [Table(4)])"])
def test_a_function_and_a_module_without_state_cross(built: str) -> None:
    assert held(COMPACT.format(setup="pass", built=built)) is None
