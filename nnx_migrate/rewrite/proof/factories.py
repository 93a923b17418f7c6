"""Fields that a factory fills (``field(default_factory=dict)``): only the constructor runs it.

Its argument is None by default, so that is what a lazy form of the explicit class has in such a field.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nnx_migrate.rewrite.outside.places import Place
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.other_values import is_self
from nnx_migrate.source.project import Module


def factory_reads(
    classes: Iterable[ClassInfo], module: Module, places: Iterable[Place]
) -> Iterator[tuple[str, Doubt]]:
    """Classes of which code outside of explicit classes may read such a field."""
    having: dict[str, list[str]] = {}
    for cls in classes:
        for one in cls.fields:
            if isinstance(one.default, ast.Call) and any(
                keyword.arg == "default_factory" for keyword in one.default.keywords
            ):
                having.setdefault(one.name, []).append(cls.name)
    for place in places if having else ():
        match place.node:
            case ast.Attribute(value=value, attr=name, lineno=line) if (
                name in having and not is_self(value)
            ):
                reason = f"the field {name}, which a factory fills, is read here"
                yield from ((cls, Doubt(module.path, line, reason)) for cls in having[name])
