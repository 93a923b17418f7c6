"""Calls of a base class' methods: ``super().__call__(x)`` and ``Base.__call__(self, x)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk


def base_calls(
    project: Project, cls: ClassInfo, method: ast.FunctionDef
) -> Iterator[tuple[ast.Call, str, ClassInfo | None]]:
    """Every call in ``method`` of a method that a base of ``cls`` has.

    Yields the call, the name of the method, and the base that was named; None for ``super()``.
    """
    bases = {one.name: one for one in cls.mro[1:]}
    scope = cls.scope.enter(method)
    receiver = receiver_of(method)
    for node in walk(method):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr)):
                yield node, attr, None
            case ast.Call(
                func=ast.Attribute(value=ast.Name() | ast.Attribute() as owner, attr=attr),
                args=[ast.Name(id=first), *_],
            ) if first == receiver:
                base = bases.get(project.resolve(owner, scope) or "")
                if base is not None:
                    yield node, attr, base


def calls_base(project: Project, cls: ClassInfo, name: str, base: ClassInfo) -> bool:
    """Whether a method of ``cls`` calls the method ``name`` that ``base`` has."""
    return any(
        attr == name and (named is None or base in named.mro)
        for method in cls.methods.values()
        for _, attr, named in base_calls(project, cls, method)
    )
