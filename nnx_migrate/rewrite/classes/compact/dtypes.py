"""Reads of an input's dtype that decide nothing but the first value of a parameter.

``self.param("scale", init, (3,), x.dtype)`` reads ``x.dtype`` when Linen initialises the parameter and at
no later call, whatever the dtype then is. So the constructor may be told: it gets ``x_dtype``. Elsewhere
(``nn.Dense(3, dtype=x.dtype)``) every call reads it anew, and the class is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.source.bindings import names_bound_at
from nnx_migrate.source.walking import walk

Read = tuple[str, int]  # the parameter, and the id of the node that reads its dtype


def dtype_reads(
    method: ast.FunctionDef, items: Iterable[Item], parameters: Iterable[str]
) -> frozenset[Read]:
    """The reads of ``parameters``, of those that the method leaves as they were given."""
    changed = {name for statement in method.body for name in _changed(statement)}
    names = frozenset(parameters) - changed
    inside = {id(node) for node in walk(method)}  # helper methods have parameters of their own
    initial = (
        part
        for item in items
        if item.kind is ItemKind.PARAM
        for part in (item.init, *item.arguments, *item.keywords)
        if part is not None
    )
    return frozenset(
        (node.value.id, id(node))
        for part in initial
        for node in walk(part)
        if isinstance(node, ast.Attribute)
        and node.attr == "dtype"
        and isinstance(node.value, ast.Name)
        and node.value.id in names
        and id(node) in inside
    )


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Names that are bound anew, in functions inside too, or whose dtype is set."""
    for node in walk(statement):
        yield from names_bound_at(node)
        match node:
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield name
