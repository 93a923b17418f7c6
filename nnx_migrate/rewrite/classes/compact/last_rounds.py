"""Layers that a loop builds in each round and calls in none: behind it only the last one has a name.

Linen's ``init`` makes no parameters for the others of ``for n in widths: head = nn.Dense(n)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.source.walking import each, walk


def refuse_last_rounds(method: ast.FunctionDef, items: Mapping[int, Item], rule: str) -> None:
    """Nothing, unless a layer is read only behind the loop that builds it.

    Raises:
      Refused: one is.
    """
    for built in _unread_in_loops(method):
        item = items.get(id(built))
        if item is not None and not item.free_of_variables:
            raise ClassRefused(
                built,
                "only what the last round builds is called, and Linen's init gives the others no parameters",
                "build it behind the loop, or call it in the loop",
                rule,
            )


def _unread_in_loops(method: ast.FunctionDef) -> Iterator[ast.Call]:
    for loop in each(method, ast.For):
        inside = [node for one in loop.body for node in walk(one)]
        names = [one for one in inside if isinstance(one, ast.Name)]
        read = {one.id for one in names if isinstance(one.ctx, ast.Load)}
        for node in inside:
            match node:
                case ast.Assign(targets=targets, value=ast.Call() as built) if all(
                    isinstance(one, ast.Name) and one.id not in read for one in targets
                ):
                    yield built
