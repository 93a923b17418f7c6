"""Indentation of the class, so that new lines look like the old ones."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from nnx_migrate.edit.page import Page, page_of
from nnx_migrate.source.classes import ClassInfo


@dataclass(frozen=True)
class Layout:
    """How a class is laid out.

    Attributes:
      newline: the end-of-line in use.
      indent: width of the indentation of the class body.
      page: how its file lays lines out.
    """

    newline: str
    indent: int
    page: Page

    @property
    def unit(self) -> str:
        """One more level of indentation."""
        return self.page.unit

    @property
    def body(self) -> int:
        """Width of the indentation of a method body."""
        return self.indent + len(self.unit)


def layout_of(cls: ClassInfo) -> Layout:
    """Layout of a class statement."""
    methods = [one for one in cls.node.body if isinstance(one, ast.FunctionDef)]
    outer = cls.node.col_offset
    inner = unit_of(cls.module.text, cls.module.lines.starts, cls.node) or "    "
    units = [unit_of(cls.module.text, cls.module.lines.starts, one) for one in methods]
    unit = next((one for one in units if one), inner)
    return Layout(cls.module.lines.newline, outer + len(inner), page_of(cls.module.text, unit))


def unit_of(text: str, starts: Sequence[int], node: ast.ClassDef | ast.FunctionDef) -> str | None:
    """How far the body of a definition is indented against its head; None: it shares the line."""
    first = node.body[0]
    decorators: list[ast.expr] = getattr(first, "decorator_list", [])
    line = min([first.lineno, *(one.lineno for one in decorators)])
    if line == node.lineno:
        return None
    found = text[starts[line - 1] :]
    leading = found[: len(found) - len(found.lstrip(" \t\f"))]
    return leading[node.col_offset :] or None


def docstring_of(body: Sequence[ast.stmt]) -> ast.Expr | None:
    """The docstring statement that ``body`` begins with."""
    match body:
        case [ast.Expr(value=ast.Constant(value=str())) as first, *_]:
            return first
        case _:
            return None
