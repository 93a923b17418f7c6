"""What ``from module import *`` takes from a module of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from nnx_migrate.ledger.trees import statements, walk


@dataclass(frozen=True)
class Exports:
    """``names`` of a plain ``__all__``; None where any name may be in it.

    A module without ``__all__`` exports what does not begin with an underscore.
    """

    has_all: bool = False
    names: frozenset[object] | None = None

    def __contains__(self, name: str) -> bool:
        """Whether a star import takes a name; ``*`` stands for any."""
        if not self.has_all:
            return not name.startswith("_")
        return name == "*" or self.names is None or name in self.names


def exports(tree: ast.Module) -> Exports:
    """What a file exports."""
    lists = [value for node in statements(tree) for value in _listed(node)]
    items = [item for one in lists if isinstance(one, ast.List | ast.Tuple) for item in one.elts]
    is_plain = all(isinstance(one, ast.List | ast.Tuple) for one in lists)
    if not is_plain or not all(isinstance(one, ast.Constant) for one in items):
        return Exports(has_all=True)
    names = frozenset(one.value for one in items if isinstance(one, ast.Constant))
    return Exports(bool(lists), names)


def _listed(node: ast.stmt) -> Iterator[ast.AST]:
    """What a statement gives ``__all__``; the statement where that is no value of its own."""
    match node:
        case ast.Assign(targets=targets, value=value):
            plain = [one for one in targets if _is_all(one)]
            yield from (value for _ in plain)
            yield from (
                node for one in targets if one not in plain and any(map(_is_all, walk(one)))
            )
        case ast.AnnAssign(target=target, value=ast.expr() as value) if _is_all(target):
            yield value
        case ast.AugAssign(target=target) if _is_all(target):
            yield node


def _is_all(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"
