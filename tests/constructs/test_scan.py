"""``nn.scan`` of a class: which calls are rewritten, which are refused and why."""

from __future__ import annotations

import ast

import pytest

from nnx_migrate.constructs import convert_call, name_rule
from nnx_migrate.constructs.common.base import Code, LayerCall, Refusal
from nnx_migrate.edit.rendering import Renderer
from tests.constructs.convert import refusal, text, text_of


def scan(text: str) -> Code | Refusal:
    tree = ast.parse(text)
    (statement,) = tree.body
    assert isinstance(statement, ast.Expr)
    call = statement.value
    assert isinstance(call, ast.Call)
    return convert_call(LayerCall("flax.linen.scan", call, Renderer(text, tree)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "nn.scan(Block, variable_axes={'params': 0}, split_rngs={'params': True}, length=n)",
            "nnm.scan(Block, variable_axes={'params': 0}, split_rngs={'params': True}, length=n)",
        ),
        (
            "nn.scan(Cell, variable_broadcast='params', in_axes=1, out_axes=1)",
            "nnm.scan(Cell, variable_broadcast='params', in_axes=1, out_axes=1)",
        ),
        (
            "nn.scan(Block, {'params': 0}, 'cache', False, {'params': True}, 0, 0, 4, True, 2)",
            (
                "nnm.scan(Block, variable_axes={'params': 0}, variable_broadcast='cache', "
                "variable_carry=False, split_rngs={'params': True}, in_axes=0, out_axes=0, "
                "length=4, reverse=True, unroll=2)"
            ),
        ),
        (
            "nn.scan(target=m.Block, variable_axes={}, data_transform=None, methods=None)",
            "nnm.scan(m.Block, variable_axes={})",
        ),
        (
            "nn.scan(partial(Block, 3), variable_axes=axes, length=n, _split_transpose=True)",
            "nnm.scan(partial(Block, 3), variable_axes=axes, length=n, _split_transpose=True)",
        ),
    ],
)
def test_options_stay_what_they_are(before: str, after: str) -> None:
    found = scan(before)
    assert isinstance(found, Code)
    assert text_of(found) == after
    assert found.imports == {"nnm"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nn.scan(**options)", "whose arguments the call does not show"),
        ("nn.scan(length=3)", "whose arguments the call does not show"),
        ("nn.scan(Block, methods=[name])", "methods="),
        ("nn.scan(Block, data_transform=f)", "data_transform="),
        ("nn.scan(blocks[0])", "something else than a named module class"),
        ("nn.scan(Block, variable_axes={'params': 0})", "without length="),
        ("nn.scan(Block, variable_axes={'params': 0}, length=None)", "without length="),
        ("nn.scan(Block, out_axes=(0, nn.broadcast))", "nn.broadcast in out_axes"),
        ("nn.scan(Block, axis=1)", "unknown argument 'axis'"),
        (
            "nn.scan(Block, variable_axes={'params': -1}, length=3, metadata_params={nn.PARTITION_NAME: 'a'})",
            "along an axis from the end, with its name",
        ),
    ],
)
def test_a_scan_that_cannot_be_carried_over_is_refused(text: str, reason: str) -> None:
    found = scan(text)
    assert isinstance(found, Refusal)
    assert reason in found.message


def test_the_function_as_a_value_is_refused() -> None:
    assert isinstance(name_rule("flax.linen.scan"), Refusal)


def test_broadcast_is_the_same_object() -> None:
    found = name_rule("flax.linen.broadcast")
    assert isinstance(found, Code)
    assert text_of(found) == "nnm.broadcast"
    from flax import linen

    from nnx_migrate import nn as nnm

    assert nnm.broadcast is linen.broadcast


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.scan(Block, methods=None)", "nnm.scan(Block)"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.scan(Layer, methods=NAMES)", "scan with methods="),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason
