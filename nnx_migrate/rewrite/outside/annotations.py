"""Annotations that the running program reads: a class there is compared with, or called, as a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import walk

_READERS = frozenset({"__annotations__", "get_type_hints", "get_annotations", "annotation"})
# Packages that check, convert or dispatch by the annotations of functions and classes.
_PACKAGES = frozenset(
    {
        "beartype",
        "cattrs",
        "dacite",
        "draccus",
        "jsonargparse",
        "multipledispatch",
        "plum",
        "pydantic",
        "simple_parsing",
        "typeguard",
        "tyro",
    }
)
_WORDS = (*_READERS, *_PACKAGES, "fields")  # only files with one are looked at


def reader_of(project: Project, places: Places, place: Place) -> str | None:
    """What reads an annotation at run time, in words; None where nothing is seen to."""
    node: ast.AST | None = place.node
    while node is not None and not isinstance(node, ast.stmt):
        node = places.parent(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Attribute) and decorator.attr == "register":
                return f"{ast.unparse(decorator)} dispatches by this annotation"
    return _reads(project)


def named_in_strings(annotation: ast.AST) -> Iterator[ast.expr]:
    """The names in an annotation that is a string."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            parsed = ast.parse(annotation.value, mode="eval")
        except SyntaxError:
            return
        for node in walk(parsed):
            if isinstance(node, ast.Name | ast.Attribute):
                yield node


@lru_cache(maxsize=8)
def _reads(project: Project) -> str | None:
    """What of the project reads annotations first."""
    found = (
        f"{module.name} reads annotations, with {reader}"
        for module in project.modules.values()
        if any(word in module.text for word in _WORDS)
        for reader in _readers(module)
    )
    return next(found, None)


def _readers(module: Module) -> Iterator[str]:
    nodes = module.nodes
    describes = any(
        isinstance(one, ast.Name | ast.Attribute) and _name(one) == "fields" for one in nodes
    )
    for node in nodes:
        match node:
            case ast.Name() | ast.Attribute() if _name(node) in _READERS:
                yield _name(node)
            case ast.Attribute(attr="type") if describes:
                yield "the types of fields"
            case ast.Constant(value="__annotations__"):
                yield "__annotations__"
            case ast.Import(names=names):
                yield from (one.name for one in names if one.name.split(".")[0] in _PACKAGES)
            case ast.ImportFrom(module=str(name), level=0) if name.split(".")[0] in _PACKAGES:
                yield name


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr
