"""Attributes of modules that code applies to variables: ``bound.head.apply({"params": ...}, x)``."""

from __future__ import annotations

import ast
from functools import lru_cache

from nnx_migrate.source.other_values import is_self
from nnx_migrate.source.project import Project


@lru_cache(maxsize=2)  # every class with a layer that is not always built asks
def applied_outside(project: Project) -> frozenset[str]:
    """Names of attributes whose ``apply`` is called, of other modules than ``self``."""
    found: set[str] = set()
    for module in project.modules.values():
        for node in module.by_word.get("apply", ()):
            match node:
                case ast.Attribute(value=ast.Attribute(value=owner, attr=name)):
                    if not is_self(owner):
                        found.add(name)
    return frozenset(found)
