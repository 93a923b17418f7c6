"""Whether a loop may end early, so that its ``else`` does not run."""

from __future__ import annotations

import ast
from collections.abc import Iterable


def breaks(body: Iterable[ast.AST]) -> bool:
    """Whether statements of a loop's body may end it (a loop inside keeps its own ``break``)."""
    return any(isinstance(one, ast.Break) or breaks(_parts(one)) for one in body)


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    if isinstance(node, ast.For | ast.AsyncFor | ast.While):
        return node.orelse
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return ()
    return ast.iter_child_nodes(node)
