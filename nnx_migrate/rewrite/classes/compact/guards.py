"""Guards of a compact method: ``assert self.width > 0``, or an ``if`` that raises, in front of what it builds.

``__init__`` builds now, so that it would fail first, and in another way: it takes over those that ask fields alone.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from itertools import chain

from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.unread import is_pure
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each


def guards_of(
    project: Project, cls: ClassInfo, method: ast.FunctionDef, receiver: str
) -> frozenset[int]:
    """Ids of the method's own statements that raise, and do nothing else, where fields say so.

    A module whose other methods can be called may do so with fields that this one refuses.
    """
    if method.name != "__call__" or any(
        map(_is_public, {*chain(*(one.methods for one in cls.mro))})
    ):
        return frozenset()
    local = names_bound_below(method) - {receiver}

    def asks_fields(*nodes: ast.expr | None) -> bool:
        return all(_asks(one, receiver, cls.field_names, local) for one in nodes if one is not None)

    def is_guard(node: ast.stmt) -> bool:
        match node:
            case ast.If(test=test, body=[ast.Raise(exc=ast.expr() as error)], orelse=orelse):
                asks = asks_fields(test, error) and all(map(is_guard, orelse))
            case ast.Assert(test=test, msg=message):
                asks = asks_fields(test, message)
            case _:
                return False
        return asks and is_pure(project, cls.scope.enter(method), test)

    return frozenset(id(one) for one in method.body if is_guard(one))


def _asks(node: ast.expr, receiver: str, fields: Collection[str], local: frozenset[str]) -> bool:
    """Whether an expression reads fields and global names alone."""
    owners = {id(one.value) for one in each(node, ast.Attribute) if one.attr in fields}
    uses = (one for one in each(node, ast.Name) if one.id == receiver)
    return not free_names(node) & local and all(id(one) in owners for one in uses)


def _is_public(name: str) -> bool:
    return not name.startswith("_") and name != "setup"
