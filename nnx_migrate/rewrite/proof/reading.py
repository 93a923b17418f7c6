"""Module-level code of a project that classes read, at any remove."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from nnx_migrate.rewrite.outside.readers import class_loads, defining_loads
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each, walk


def read_by(
    project: Project, classes: Iterable[ClassInfo], texts: Mapping[str, str]
) -> Iterator[tuple[str, Module, ast.AST]]:
    """Each class with the definitions of globals that it reads, other classes of modules aside.

    ``texts``: the new texts, by path; what a class no longer names there it does not read.
    """
    for cls in classes:
        seen: set[str] = set()
        names = _names(texts, cls)
        read = class_loads(project, cls)
        pending = [symbol for head, symbol in read if names is None or head in names]
        while pending:
            symbol = pending.pop()
            if symbol in seen or symbol in project.linen:
                continue
            seen.add(symbol)
            for module, node, loaded in defining_loads(project, symbol):
                if id(node) in project.by_node and project.by_node[id(node)].linen:
                    continue
                yield cls.name, module, node
                pending += loaded


def _names(texts: Mapping[str, str], cls: ClassInfo) -> set[str] | None:
    """The plain names in the new text of a class; None where there is none."""
    text = texts.get(cls.module.path)
    if text is None:
        return None
    return {one.id for node in named_classes(text, cls) for one in each(node, ast.Name)}


def named_classes(text: str, cls: ClassInfo) -> list[ast.ClassDef]:
    """The classes of a class's name in the new text of its file."""
    return _classes(text).get(cls.node.name, [])


@lru_cache(maxsize=64)
def _classes(text: str) -> dict[str, list[ast.ClassDef]]:
    found: dict[str, list[ast.ClassDef]] = {}
    for node in walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            found.setdefault(node.name, []).append(node)
    return found
