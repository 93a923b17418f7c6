"""Runs rules on one expression the way a class conversion does: names edited, then the call."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.model import Confidence
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.rewrite.rules import convert_call, is_linen, name_rule
from nnx_migrate.rewrite.rules.base import Code, Context, LayerCall, Refusal
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
    return _Converter(project, Renderer(project, module), sizes).expression(node.value)


def text(expression: str, sizes: Mapping[str, str] | None = None) -> str:
    """The new text of an expression that must be rewritten."""
    found = converted(expression, sizes)
    assert isinstance(found, Code), found
    return found.text


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
    def __init__(self, project: Project, renderer: Renderer, sizes: Mapping[str, str]) -> None:
        self.project = project
        self.renderer = renderer
        self.sizes = sizes
        self.scope = Scope(renderer.module)

    def expression(self, node: ast.expr) -> Code | Refusal:
        imports: set[str] = set()
        findings: list[str] = []
        confidence: list[Confidence] = []

        def render(part: ast.AST) -> str:
            return self.renderer.with_edits(self.edits(part, take)).render(part)

        def take(code: Code | Refusal) -> str:
            if isinstance(code, Refusal):
                raise _Refused(code)
            imports.update(code.imports)
            findings.extend(code.findings)
            confidence.append(code.confidence)
            return code.text

        symbol = self.symbol(node.func) if isinstance(node, ast.Call) else None
        try:
            if isinstance(node, ast.Call) and is_linen(symbol):
                call = LayerCall(symbol, node, render, self.sizes, resolve=self.symbol)
                new = take(convert_call(call))
            else:
                new = render(node)
        except _Refused as refused:
            return refused.refusal
        worst = Confidence.REVIEW if Confidence.REVIEW in confidence else Confidence.EXACT
        return Code(new, frozenset(imports), tuple(findings), worst)

    def symbol(self, node: ast.expr) -> str | None:
        return self.project.resolve(node, self.scope)

    def edits(self, part: ast.AST, take: object) -> dict[int, str]:
        found: dict[int, str] = {}
        todo = [part]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Call) and is_linen(self.symbol(node.func)):
                found[id(node)] = take(self.expression(node))  # type: ignore[operator]
            elif isinstance(node, ast.Name | ast.Attribute) and is_linen(self.symbol(node)):
                symbol = self.symbol(node)
                found[id(node)] = take(name_rule(str(symbol), Context.VALUE))  # type: ignore[operator]
            else:
                todo.extend(ast.iter_child_nodes(node))
        return found
