"""What ``super().__init__`` is given for a size, in the words of the constructor that calls it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection

from nnx_migrate.edit.expressions import Expression, expression
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each

RULE = "inheritance"


def base_size(
    cls: ClassInfo, text: str, plain: Collection[str], sizes: Collection[str]
) -> Expression:
    """The size with parameters for fields, which the base has not set yet.

    Args:
      text: as size inference spells it.
      plain: parameters that mean what the fields of their names mean.
      sizes: the size arguments of the constructor.

    Raises:
      Refused: it reads what is not there yet.
    """
    tree = _Parameters(plain).visit(ast.parse(text, mode="eval").body)
    allowed = {*plain, *sizes, *dir(builtins)}
    for one in each(tree, ast.Name):
        if one.id not in allowed:
            raise ClassRefused(
                cls.node,
                f"a base is handed {text}, which is set later",
                "give the size as a field",
                RULE,
            )
    return expression(ast.unparse(tree))


class _Parameters(ast.NodeTransformer):
    def __init__(self, plain: Collection[str]) -> None:
        self.plain = plain

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self.plain:
                return ast.Name(name, ast.Load())
        self.generic_visit(node)
        return node
