"""Names that other files take from one by ``from module import *``."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from functools import lru_cache

from nnx_migrate.source.names import Import
from nnx_migrate.source.project import Module, Project


def exported_imports(
    project: Project, module: Module, explicit_classes: Collection[str]
) -> frozenset[str]:
    """What a file imports and others take from it so, read there outside of converted classes."""
    found = set()
    for other in _importers(project).get(module.name, ()):
        classes = [cls for cls in project.linen.values() if cls.module is other]
        lines = [
            range(cls.node.lineno, (cls.node.end_lineno or cls.node.lineno) + 1)
            for cls in classes
            if cls.name in explicit_classes
        ]
        for name, binding in module.table.items():
            if isinstance(binding, Import) and any(
                isinstance(one, ast.Name) and not any(one.lineno in inside for inside in lines)
                for one in other.by_word.get(name, ())
            ):
                found.add(name)
    return frozenset(found)


def means_other(project: Project, module: Module, name: str, symbol: str) -> bool:
    """Whether a name that new code of a file needs for a symbol has another meaning by a star.

    In the file itself, from which others may take it, or in one that takes all names of it and reads this one:
    the new import would be what they get.
    """
    if project.star_target(name, module) not in (None, symbol):
        return True
    for one in _importers(project).get(module.name, ()):
        loads = (use for use in one.by_word.get(name, ()) if isinstance(use, ast.Name))
        if any(isinstance(use.ctx, ast.Load) for use in loads):
            target = project.star_target(name, one) or one.symbol(name)
            if target not in (None, symbol):
                return True
    return False


@lru_cache(maxsize=2)  # every file of a project asks
def _importers(project: Project) -> Mapping[str, list[Module]]:
    """The modules that take all names of each, also of one that takes all names of it."""
    found: dict[str, list[Module]] = {}
    for module in project.modules.values():
        for star in project.stars.sources(module):
            found.setdefault(star, []).append(module)
    return found
