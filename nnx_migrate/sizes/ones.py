"""Fields that are 1 somewhere: as sizes of layers they may be broadcast.

``nn.Dense(self.width)(x) * x`` has the last size of ``x`` where ``width`` is 1.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from nnx_migrate.sizes.mentions import mentions_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project


@lru_cache(maxsize=1 << 12)  # every run of a class asks
def fields_of_one(project: Project, cls: ClassInfo) -> frozenset[str]:
    """Fields of a class that its default, or a constructor call of the project, makes 1."""
    return frozenset(one.name for one in cls.fields if _may_be_one(project, cls, one.name, set()))


def _may_be_one(project: Project, cls: ClassInfo, name: str, seen: set[tuple[str, str]]) -> bool:
    if (cls.name, name) in seen:
        return False
    seen.add((cls.name, name))
    for builder, value in _values(project, cls, name):
        match value:
            case ast.Constant(value=1) if type(value.value) is int:
                return True
            case ast.Attribute(value=ast.Name(), attr=field) if builder is not None:
                known = any(one.name == field for one in builder.fields)
                if known and _may_be_one(project, builder, field, seen):
                    return True
    return False


def _values(
    project: Project, cls: ClassInfo, name: str
) -> Iterator[tuple[ClassInfo | None, ast.expr]]:
    """What a field gets: its default, and arguments of constructor calls with the class that makes them."""
    field = next(one for one in cls.fields if one.name == name)
    if field.default is not None:
        yield None, field.default
    yield from ((builder, given[name]) for builder, given in _calls(project, cls) if name in given)


@lru_cache(maxsize=1 << 12)  # every field asks
def _calls(
    project: Project, cls: ClassInfo
) -> tuple[tuple[ClassInfo | None, dict[str, ast.expr]], ...]:
    """Constructor calls of a class: who makes them, and what they give."""
    mentions = mentions_of(project, cls.name)
    return tuple((one.cls, cls.arguments(one.call)) for one in mentions if one.call is not None)
