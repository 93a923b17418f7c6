"""How a block goes on: what ends it early, and under which conditions its rest runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr

# What ends a block early.
RETURN, RAISE, JUMP = "return", "raise", "jump"

# Conditions under which what follows a statement runs; one that is None hangs on the call.
Rest = tuple[Expr | None, ...]

# The condition of what a round, or the rest of a block, only runs if nothing left before.
UNLESS_LEFT = ex.name(f"{ex.FOREIGN}unless_left")

_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_OWN_FLOW = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def returns(body: Iterable[ast.AST]) -> bool:
    """Whether a block may return from its function."""
    return any(isinstance(one, ast.Return) for one in _statements(body, _OWN_FLOW))


def leaves(body: Iterable[ast.AST]) -> bool:
    """Whether a round of a loop may be its last one."""
    inside = _statements(body, (*_OWN_FLOW, *_LOOPS))
    return returns(body) or any(isinstance(one, ast.Break) for one in inside)


def raises(body: Iterable[ast.AST]) -> bool:
    """Whether a block says that it may end in an error."""
    return any(isinstance(one, ast.Raise | ast.Assert) for one in _statements(body, _OWN_FLOW))


def _statements(body: Iterable[ast.AST], without: tuple[type, ...]) -> Iterator[ast.stmt]:
    """The statements of a block and of the blocks inside, but not below those of some kinds."""
    for node in body:
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case) and not isinstance(
            node, without
        ):
            yield from _statements(ast.iter_child_nodes(node), without)
