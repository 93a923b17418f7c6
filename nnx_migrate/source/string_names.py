"""Names that code writes as strings."""

from __future__ import annotations

import ast
from functools import lru_cache

from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each


@lru_cache(maxsize=1)
def string_names(project: Project) -> frozenset[str]:
    """The identifiers among a project's strings, but those of ``__all__``."""
    return frozenset(
        node.value
        for module in project.modules.values()
        for statement in module.tree.body
        if "__all__" not in bound_names(statement)
        for node in each(statement, ast.Constant)
        if isinstance(node.value, str) and node.value.isidentifier()
    )
