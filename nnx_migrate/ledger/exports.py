"""What ``from module import *`` takes from a module of the project."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from nnx_migrate.ledger.scopes import Unit


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


def exports(unit: Unit) -> Exports:
    """What a file exports."""
    bindings = unit.scope.bindings.get("__all__", [])
    lists = [one.node for one in bindings if isinstance(one.node, ast.List | ast.Tuple)]
    items = [item for one in lists for item in one.elts]
    if len(lists) < len(bindings) or not all(isinstance(one, ast.Constant) for one in items):
        return Exports(has_all=True)
    names = frozenset(one.value for one in items if isinstance(one, ast.Constant))
    return Exports(bool(bindings), names)
