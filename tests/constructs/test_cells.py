"""Recurrent cells, carries without a cell, and what is refused."""

from __future__ import annotations

import ast

import pytest

from nnx_migrate.constructs import convert_carry
from nnx_migrate.constructs.common.base import Code, Refusal
from nnx_migrate.sizes.carry_cells import carry_cells
from tests.constructs.convert import refusal, text, text_of
from tests.constructs.test_decorators import parsed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.LSTMCell(8)", "nnm.LSTMCell(8, in_features=in_features, rngs=rngs)"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.LSTMCell()", "without 'features'"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


@pytest.mark.parametrize("before", ["nn.GRUCell(8)"])
def test_an_unknown_size_is_refused(before: str) -> None:
    assert refusal(before, {}).reason.startswith("size unknown")


def carry(text: str) -> Code | Refusal | None:
    node, renderer, project, scope = parsed(text)
    assert isinstance(node, ast.Expr)
    (function,) = ast.parse("def f(): pass").body
    assert isinstance(function, ast.FunctionDef)
    function.body = [node]
    cell = carry_cells(function).get(id(node.value))
    if cell is None:
        return None
    return convert_carry(
        cell.carry_call, cell.cell, renderer, lambda one: project.resolve(one, scope)
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "nn.LSTMCell(f, parent=None).initialize_carry(key, x.shape)",
            "nnm.LSTMCell.make_carry(key, x.shape, features=f)",
        ),
        (
            "nn.GRUCell(features=8, carry_init=i).initialize_carry(key, input_shape=s)",
            "nnm.GRUCell.make_carry(key, input_shape=s, features=8, carry_init=i)",
        ),
        (
            "nn.ConvLSTMCell(4, (3,)).initialize_carry(key, s)",
            "nnm.ConvLSTMCell.make_carry(key, s, features=4, kernel_size=(3,))",
        ),
    ],
)
def test_the_carry_of_a_cell_needs_no_cell(before: str, after: str) -> None:
    found = carry(before)
    assert isinstance(found, Code)
    assert text_of(found) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nn.LSTMCell().initialize_carry(key, s)", "without 'features'"),
        ("nn.LSTMCell(*args).initialize_carry(key, s)", "the fields are not shown"),
        ("nn.LSTMCell(8, size=1).initialize_carry(key, s)", "unknown argument 'size'"),
    ],
)
def test_a_carry_of_a_cell_with_unknown_fields_is_refused(text: str, reason: str) -> None:
    found = carry(text)
    assert isinstance(found, Refusal)
    assert reason in found.reason


@pytest.mark.parametrize(
    "text",
    ["self.cell.initialize_carry(k, s)", "nn.LSTMCell(8)(c, x)", "Cell(8).initialize_carry()"],
)
def test_other_calls_are_no_carry(text: str) -> None:
    assert carry(text) is None
