"""Submodules of ``setup`` that no code of the project reads: Linen's ``init`` gives them no parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from nnx_migrate.rewrite.classes.checks.reviews import Note
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.reading.attributes import Attribute
from nnx_migrate.sizes.expressions.subscripts import key_text
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

_UNREAD = (
    "no code of the project reads {}: Linen's init makes no parameters for a submodule that is never"
    " called, the NNX module has them"
)


def unread(
    project: Project, cls: ClassInfo, attributes: Sequence[Attribute], items: Mapping[int, Item]
) -> Iterator[Note]:
    """The attributes, and items of lists and dicts in them, that hold such submodules."""
    same = [one.name for one in attributes]
    for one in attributes:
        shared = sum(other.value is one.value for other in attributes) > 1
        if shared or same.count(one.name) > 1 or not _builds(one.value, items):
            continue
        reads = _reads(project, cls, one.name)
        if not reads:
            yield one.value, _UNREAD.format(f"self.{one.name}")
            continue
        for key, value in _entries(one.value):
            keys = {_key(read) for read in reads}
            if _builds(value, items) and None not in keys and key not in keys:
                yield value, _UNREAD.format(f"self.{one.name}[{key}]")


def _builds(value: ast.expr, items: Mapping[int, Item]) -> bool:
    found = (items.get(id(one)) for one in walk(value))
    return any(
        one is not None and one.kind is ItemKind.SITE and not one.free_of_variables for one in found
    )


def _reads(project: Project, cls: ClassInfo, name: str) -> list[ast.AST]:
    """What stands around every read of an attribute of this name, and every mention in a string."""
    own = list(_reads_in(cls.node, name))
    if any(_key(one) is None for one in own):
        return own
    rest = [one.tree for one in project.modules.values() if name in one.text]
    return [found for tree in rest for found in _reads_in(tree, name)]


def _reads_in(tree: ast.AST, name: str) -> list[ast.AST]:
    named, computed = _all_reads(tree)
    return [*named.get(name, ()), *computed]


@lru_cache(maxsize=1 << 12)  # every attribute of every class asks
def _all_reads(tree: ast.AST) -> tuple[dict[str, list[ast.AST]], list[ast.AST]]:
    """What stands around every read of an attribute, by its name, and reads of computed names."""
    named: dict[str, list[ast.AST]] = {}
    computed: list[ast.AST] = []
    for node in walk(tree):
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Attribute(attr=attr, ctx=ast.Load()):
                    named.setdefault(attr, []).append(node)
                case ast.Constant(value=str(text)):
                    for word in {*text.split(".")}:
                        named.setdefault(word, []).append(node)
                case ast.Call(func=ast.Name(id="getattr" | "vars")):
                    computed.append(child)
    return named, computed


def _key(read: ast.AST) -> str | None:
    """The item of a list or dict that is read, where that is written out."""
    return key_text(read.slice) if isinstance(read, ast.Subscript) else None


def _entries(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            if not any(isinstance(one, ast.Starred) for one in parts):
                yield from ((str(index), one) for index, one in enumerate(parts))
        case ast.Dict(keys=keys, values=values):
            texts = [key_text(one) for one in keys]
            if None not in texts:
                yield from zip((one or "" for one in texts), values, strict=True)
