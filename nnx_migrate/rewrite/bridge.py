"""Between the parts that still write text and those that make nodes; it goes with the last text."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from nnx_migrate.edit.calls import NONE, Argument, Comments
from nnx_migrate.edit.expressions import Expression, expression


@dataclass(frozen=True)
class Nodes:
    """Nodes of rendered texts."""

    text: Callable[[ast.AST], str]
    unit: str = "    "

    def render(self, node: ast.AST) -> Expression:
        """The node of a rendered expression."""
        text = self.text(node)
        return expression(f"({text})" if "\n" in text else text)

    def argument(self, value: ast.expr, keyword: str | None = None) -> Argument:
        """A value as an argument."""
        if isinstance(value, ast.Starred):
            return Argument(self.render(value.value), keyword, "*")
        return Argument(self.render(value), keyword)

    def keyword(self, one: ast.keyword) -> Argument:
        """A keyword argument."""
        found = self.argument(one.value, one.arg)
        return replace(found, star="**") if one.arg is None else found

    def comments(self, value: ast.expr) -> Comments:
        """Text has none."""
        return NONE
