"""Whether a replacement stands where the old expression stood, or needs parentheses for it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from nnx_migrate.edit.data import EditError
from nnx_migrate.edit.expressions import is_element, is_operand, parenthesize
from nnx_migrate.edit.syntax import cst

# Fields of a parent that take any expression except a bare tuple, a walrus or a yield.
_OPEN_FIELDS = {
    ast.Call: ("args",),
    ast.keyword: ("value",),
    ast.Assign: ("value",),
    ast.AnnAssign: ("value", "annotation"),
    ast.AugAssign: ("value",),
    ast.Return: ("value",),
    ast.Expr: ("value",),
    ast.List: ("elts",),
    ast.Tuple: ("elts",),
    ast.Set: ("elts",),
    ast.Dict: ("values",),
    ast.Subscript: ("slice",),
    ast.If: ("test",),
    ast.While: ("test",),
    ast.Assert: ("test", "msg"),
    ast.For: ("iter",),
    ast.ListComp: ("elt",),
    ast.ClassDef: ("bases", "decorator_list"),
    ast.FunctionDef: ("decorator_list", "returns"),
    ast.arg: ("annotation",),
    ast.arguments: ("defaults", "kw_defaults"),
}


class Unrenderable(EditError):
    """An edit that cannot be placed reliably; carries the node and the reason."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        """Name the node's line in the message."""
        line = getattr(node, "lineno", None)
        where = f"line {line}: " if line else ""
        super().__init__(f"{where}{reason}")
        self.node = node
        self.reason = reason


@dataclass(frozen=True)
class Place:
    """An edited node below some node, topmost there."""

    node: ast.AST
    parent: ast.AST
    field: str


def fit(replacement: Any, old: Any, place: Place) -> Any:
    """A replacement with the parentheses that it had, and those that it needs."""
    if not isinstance(old, cst.BaseExpression):
        return replacement
    if old.lpar and not isinstance(old, cst.Tuple):
        if replacement.lpar and not isinstance(replacement, cst.Tuple):
            return replacement
        replacement = replacement.with_changes(
            lpar=[*old.lpar, *replacement.lpar], rpar=[*replacement.rpar, *old.rpar]
        )
    elif not _fits(replacement, place):
        replacement = parenthesize(replacement)
    return replacement


def _fits(replacement: Any, place: Place) -> bool:
    if isinstance(replacement, cst.Integer | cst.Float | cst.Imaginary):
        return not (isinstance(place.parent, ast.Attribute) and place.field == "value")
    is_target = isinstance(place.parent, ast.For | ast.comprehension) and place.field == "target"
    if is_operand(replacement) or is_target:
        return True
    if isinstance(place.parent, ast.Call) and isinstance(place.node, ast.GeneratorExp):
        return is_element(replacement)
    return is_element(replacement) and place.field in _OPEN_FIELDS.get(type(place.parent), ())
