"""How a block of statements may be left before its end."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nnx_migrate.source.bindings import breaks


def returns(body: Iterable[ast.AST]) -> bool:
    """Whether a block may return from its function."""
    return any(isinstance(one, ast.Return) for one in _statements(body))


def leaves(body: Iterable[ast.stmt]) -> bool:
    """Whether a round of a loop with this body may be its last one."""
    return breaks(body) or returns(body)


def raises(body: Iterable[ast.AST]) -> bool:
    """Whether a block says that it may end in an error."""
    return any(isinstance(one, ast.Raise | ast.Assert) for one in _statements(body))


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a block and of the blocks inside, functions and classes aside."""
    for node in body:
        if not isinstance(node, ast.expr | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
            yield from _statements(ast.iter_child_nodes(node))
