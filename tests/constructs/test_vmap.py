"""``nn.vmap`` of a class: which calls are rewritten, which are refused and why."""

from __future__ import annotations

import ast

import pytest

from nnx_migrate.constructs import convert_call
from nnx_migrate.constructs.common.base import Code, LayerCall, Refusal
from nnx_migrate.edit.rendering import Renderer
from tests.constructs.convert import refusal, text, text_of


def vmap(text: str) -> Code | Refusal:
    tree = ast.parse(text)
    (statement,) = tree.body
    assert isinstance(statement, ast.Expr)
    call = statement.value
    assert isinstance(call, ast.Call)
    return convert_call(LayerCall("flax.linen.vmap", call, Renderer(text, tree)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            (
                "nn.vmap(Critic, variable_axes={'params': 0}, split_rngs={'params': True}, "
                "in_axes=None, out_axes=0, axis_size=self.n)"
            ),
            (
                "nnm.vmap(Critic, variable_axes={'params': 0}, split_rngs={'params': True}, "
                "in_axes=None, out_axes=0, axis_size=self.n)"
            ),
        ),
        (
            "nn.vmap(Critic, {'params': None}, {'params': False}, (0, None))",
            (
                "nnm.vmap(Critic, variable_axes={'params': None}, split_rngs={'params': False}, "
                "in_axes=(0, None))"
            ),
        ),
        ("nn.vmap(m.Critic, methods=None)", "nnm.vmap(m.Critic)"),
        ("nn.vmap(Critic, axis_name='batch')", "nnm.vmap(Critic, axis_name='batch')"),
    ],
)
def test_options_stay_what_they_are(before: str, after: str) -> None:
    found = vmap(before)
    assert isinstance(found, Code)
    assert text_of(found) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nn.vmap(**options)", "whose arguments the call does not show"),
        ("nn.vmap(Critic, methods=[name])", "methods="),
        ("nn.vmap(lambda m, x: m(x), variable_axes={'params': 0})", "than a named module class"),
        ("nn.vmap(blocks[0])", "something else than a named module class"),
        ("nn.vmap(Critic, variable_axes={'params': 0})", "without axis_size="),
        ("nn.vmap(Critic, variable_axes={**axes})", "without axis_size="),
        ("nn.vmap(Critic, length=1)", "unknown argument 'length'"),
        (
            "nn.vmap(Critic, variable_axes={'params': -1}, axis_size=2, metadata_params={nn.PARTITION_NAME: 'a'})",
            "along an axis from the end, with its name",
        ),
    ],
)
def test_a_vmap_that_cannot_be_carried_over_is_refused(text: str, reason: str) -> None:
    found = vmap(text)
    assert isinstance(found, Refusal)
    assert reason in found.message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.vmap(Block, methods=None)", "nnm.vmap(Block)"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.vmap(Layer, methods=NAMES)", "vmap with methods="),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason
