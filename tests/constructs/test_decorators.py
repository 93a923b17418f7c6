"""Linen decorators of methods."""

from __future__ import annotations

import ast

import pytest

from nnx_migrate.constructs import convert_decorator
from nnx_migrate.constructs.common.base import Code, Refusal
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.source.project import Project, Scope, parse
from tests.constructs.convert import text_of

HEADER = """\
import functools
from functools import partial
import flax.linen as nn
from flax.linen import partitioning
import jax
"""


def parsed(text: str) -> tuple[ast.stmt, Renderer, Project, Scope]:
    module = parse("m", "m.py", HEADER + text)
    renderer = Renderer(module.text, module.tree)
    return module.tree.body[-1], renderer, Project({"m": module}), Scope(module)


def decorated(text: str) -> Code | Refusal | None:
    node, renderer, project, scope = parsed(f"@{text}\ndef f(self): pass\n")
    assert isinstance(node, ast.FunctionDef)
    return convert_decorator(
        node.decorator_list[0],
        renderer,
        lambda one: project.resolve(one, scope),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.compact", ""),
        ("nn.nowrap", ""),
        ("nn.module.compact", ""),
        ("nn.remat", "nnm.remat"),
        ("nn.checkpoint", "nnm.remat"),
        (
            "functools.partial(nn.remat, static_argnums=(2,), rngs=True)",
            "functools.partial(nnm.remat, static_argnums=(2,))",
        ),
        (
            (
                "partial(nn.transforms.scan, variable_broadcast='params', in_axes=1, out_axes=1, "
                "split_rngs={'params': False})"
            ),
            (
                "partial(nnm.scan, variable_broadcast='params', in_axes=1, out_axes=1, "
                "split_rngs={'params': False})"
            ),
        ),
        (
            "partial(nn.scan, variable_axes={}, in_axes=(0, None), length=self_length)",
            "partial(nnm.scan, in_axes=(0, None), length=self_length)",
        ),
        (
            "partial(nn.scan, in_axes=(nn.broadcast, 0), out_axes=axes)",
            "partial(nnm.scan, in_axes=(nn.broadcast, 0), out_axes=axes)",
        ),
        (
            "partial(nn.vmap, variable_axes={'params': None}, in_axes=(0, None))",
            "partial(nnm.vmap, variable_axes={'params': None}, in_axes=(0, None))",
        ),
    ],
)
def test_a_decorator_is_rewritten(before: str, after: str) -> None:
    found = decorated(before)
    assert isinstance(found, Code)
    assert text_of(found) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("partial(nn.scan, metadata_params={'size': 3})", "metadata_params of other keys"),
        ("partial(nn.vmap, metadata_params={**names})", "metadata_params of other keys"),
        ("partial(nn.scan, methods=['f'])", "methods="),
        ("partial(nn.vmap, variable_axes={'params': 0})", "stacks variables"),
        ("partial(nn.scan, variable_axes=axes, length=3)", "stacks variables"),
        ("partial(nn.scan, **options)", "does not name"),
        ("partial(nn.scan, f)", "does not name"),
        ("partial(nn.remat, methods=['f'])", "remat with methods="),
        ("partial(nn.remat, rngs=False)", "remat with rngs="),
        ("partial(partitioning.remat, static_argnums=(1,))", "used as a value"),
        ("nn.compact_name_scope", "compact_name_scope"),
        ("nn.named_call", "named_call"),
        ("nn.compact()", "a decorator that calls"),
    ],
)
def test_a_decorator_is_refused(before: str, reason: str) -> None:
    found = decorated(before)
    assert isinstance(found, Refusal)
    assert reason in found.reason
    assert found.recipe


@pytest.mark.parametrize(
    "text", ["property", "jax.jit", "partial(jax.jit, static_argnums=0)", "partial(f)", "g.h(1)"]
)
def test_other_decorators_are_left_alone(text: str) -> None:
    assert decorated(text) is None
