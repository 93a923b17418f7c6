"""Runs rules on one expression the way a class conversion does: names edited, then the call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from nnx_migrate.constructs import convert_call, is_linen, name_rule
from nnx_migrate.constructs.common.base import Code, Context, LayerCall, Refusal
from nnx_migrate.edit.expressions import Expression, code_of
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.model import Confidence
from nnx_migrate.source.project import Project, Scope, parse

HEADER = """\
import flax.linen as nn
from flax.linen import partitioning
import jax
import jax.numpy as jnp
import functools
"""


def converted(expression: str, sizes: Mapping[str, str] | None = None) -> Code | Refusal:
    """What becomes of an expression; sizes default to ``in_features=in_features``."""
    module = parse("m", "m.py", f"{HEADER}{expression}\n")
    project = Project({"m": module})
    node = module.tree.body[-1]
    assert isinstance(node, ast.Expr)
    if sizes is None:
        sizes = {"in_features": "in_features"}
    return _Converter(project, Scope(module), Renderer(module.text, module.tree), sizes).expression(
        node.value
    )


def text(expression: str, sizes: Mapping[str, str] | None = None) -> str:
    """The new text of an expression that must be rewritten."""
    found = converted(expression, sizes)
    assert isinstance(found, Code), found
    return text_of(found)


def text_of(code: Code) -> str:
    """The text of a node; empty where none is left."""
    return "" if code.node is None else code_of(code.node)


def refusal(expression: str, sizes: Mapping[str, str] | None = None) -> Refusal:
    """The refusal of an expression that must be refused, with a reason and a recipe."""
    found = converted(expression, sizes)
    assert isinstance(found, Refusal), found
    assert found.reason
    assert found.recipe
    return found


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


class _Converter:
    def __init__(
        self, project: Project, scope: Scope, renderer: Renderer, sizes: Mapping[str, str]
    ) -> None:
        self.project = project
        self.renderer = renderer
        self.sizes = sizes
        self.scope = scope

    def expression(self, node: ast.expr) -> Code | Refusal:
        imports: set[str] = set()
        findings: list[str] = []
        confidence: list[Confidence] = []

        def take(code: Code | Refusal) -> Expression:
            if isinstance(code, Refusal):
                raise _Refused(code)
            imports.update(code.imports)
            findings.extend(code.findings)
            confidence.append(code.confidence)
            assert code.node is not None
            return code.node

        symbol = self.symbol(node.func) if isinstance(node, ast.Call) else None
        try:
            if isinstance(node, ast.Call) and is_linen(symbol):
                inside = [
                    edits
                    for one in (*node.args, *node.keywords)
                    for edits in [self.edits(one, take)]
                ]
                source = self.renderer.with_edits({k: v for one in inside for k, v in one.items()})
                new = take(
                    convert_call(LayerCall(symbol, node, source, self.sizes, resolve=self.symbol))
                )
            else:
                new = self.renderer.with_edits(self.edits(node, take)).render(node)
        except _Refused as refused:
            return refused.refusal
        worst = Confidence.REVIEW if Confidence.REVIEW in confidence else Confidence.EXACT
        return Code(new, frozenset(imports), tuple(findings), worst)

    def symbol(self, node: ast.expr) -> str | None:
        return self.project.resolve(node, self.scope)

    def edits(self, part: ast.AST, take: Callable[[Code | Refusal], Expression]) -> dict[int, Any]:
        found: dict[int, Any] = {}
        todo = [part]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Call) and is_linen(self.symbol(node.func)):
                found[id(node)] = lambda _, one=node: take(self.expression(one))
            elif isinstance(node, ast.Name | ast.Attribute) and is_linen(self.symbol(node)):
                symbol = self.symbol(node)
                found[id(node)] = lambda _, one=symbol: take(name_rule(str(one), Context.VALUE))
            else:
                todo.extend(ast.iter_child_nodes(node))
        return found
