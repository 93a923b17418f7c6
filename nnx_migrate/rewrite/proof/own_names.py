"""Names that an explicit class still has."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from nnx_migrate.rewrite.proof.reading import named_classes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.other_values import makes_variable
from nnx_migrate.source.walking import walk


def own_names(texts: Mapping[str, str], cls: ClassInfo) -> set[str]:
    """Names that the explicit class still has: attributes it sets plainly, methods and properties."""
    found: set[str] = set()
    for owner in cls.mro:
        for node in named_classes(texts.get(owner.module.path, ""), owner):
            found |= _set_names(node)
        found -= {*_held_variables(owner.node)}
    return found


def _held_variables(cls: ast.ClassDef) -> Iterator[str]:
    """Attributes for variables that are no parameters: Linen has boxes that can be written."""
    for node in walk(cls):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value
            ) if makes_variable(value):
                yield name


def _set_names(cls: ast.ClassDef) -> set[str]:
    found = {one.name for one in cls.body if isinstance(one, ast.FunctionDef)}
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            found |= _always_set(method.body)
    return found


def _always_set(body: Iterable[ast.stmt]) -> set[str]:
    """Attributes that statements set; what stands below an `if` need not be there."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.If):
            found |= _always_set(statement.body) & _always_set(statement.orelse)
        for node in walk(statement) if isinstance(statement, ast.Assign) else ():
            match node:
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                    found.add(name)
    return found
