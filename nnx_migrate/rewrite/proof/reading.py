"""Module-level code of a project that classes read, at any remove."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nnx_migrate.rewrite.outside.survey import definitions, loads
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project, Scope


def read_by(
    project: Project, classes: Iterable[ClassInfo]
) -> Iterator[tuple[str, Module, ast.AST]]:
    """Each class with the definitions of globals that it reads, other classes of modules aside."""
    for cls in classes:
        seen: set[str] = set()
        pending = list(loads(project, cls.node, cls.scope))
        while pending:
            symbol = pending.pop()
            if symbol in seen or symbol in project.linen:
                continue
            seen.add(symbol)
            module, rest = project.split(symbol)
            if module is None or not rest or rest[0] not in module.table:
                continue
            for node in definitions(module, rest[0]):
                if id(node) in project.by_node and project.by_node[id(node)].linen:
                    continue
                yield cls.name, module, node
                pending += loads(project, node, Scope(module))
