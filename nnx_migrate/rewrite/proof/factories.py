"""Fields that a factory fills (``field(default_factory=dict)``): only the constructor runs it.

Its argument is None by default, so that is what a lazy form of the explicit class has in such a field.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from nnx_migrate.rewrite.classes.fields.making import factory_value
from nnx_migrate.rewrite.outside.places import Place
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module
from nnx_migrate.source.walking import is_self


def factory_fields(classes: Iterable[ClassInfo]) -> Mapping[str, list[str]]:
    """The classes that have such a field, by its name."""
    found: dict[str, list[str]] = {}
    for cls in classes:
        for one in cls.fields:
            if isinstance(one.default, ast.Call) and any(
                keyword.arg == "default_factory" and factory_value(keyword.value) is None
                for keyword in one.default.keywords
            ):
                found.setdefault(one.name, []).append(cls.name)
    return found


def factory_reads(
    fields: Mapping[str, list[str]], module: Module, places: Iterable[Place]
) -> Iterator[tuple[str, Doubt]]:
    """Classes of which code outside of explicit classes may read such a field."""
    for place in places if fields else ():
        match place.node:
            case ast.Attribute(value=value, attr=name, lineno=line) if (
                name in fields and not is_self(value)
            ):
                reason = f"the field {name}, which a factory fills, is read here"
                yield from ((cls, Doubt(module.path, line, reason)) for cls in fields[name])
