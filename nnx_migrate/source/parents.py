"""What stands around a node."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.walking import children, walk

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Parents:
    """The way up from every node of ``tree``."""

    def __init__(self, tree: ast.AST) -> None:
        """Note the parent of every node."""
        self._parents = {id(child): node for node in walk(tree) for child in children(node)}

    def of(self, node: ast.AST) -> ast.AST | None:
        """The node that ``node`` is a part of."""
        return self._parents.get(id(node))

    def above(self, node: ast.AST) -> list[ast.AST]:
        """Everything around ``node``, the innermost first."""
        found: list[ast.AST] = []
        parent = self.of(node)
        while parent is not None:
            found.append(parent)
            parent = self.of(parent)
        return found

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function around ``node``."""
        return next(self.functions(node), None)

    def functions(self, node: ast.AST) -> Iterator[FunctionNode]:
        """Every function around ``node``, the innermost first."""
        return (one for one in self.above(node) if isinstance(one, FUNCTIONS))

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around ``node``."""
        return next((one for one in self.above(node) if isinstance(one, ast.ClassDef)), None)
