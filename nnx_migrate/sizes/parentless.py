"""Modules that are nobody's submodules: ``Layer(width, parent=None).apply(variables, x)``.

A Linen module built with ``parent=None`` belongs to no scope, and one that is not kept but only asked
for a pure function of variables is adopted by no other module either (flax 0.12.8, linen/module.py).
A function that builds such modules builds no submodules for its callers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import is_none_literal, walk


@lru_cache(maxsize=2)  # every analysis of a project asks
def parentless_calls(project: Project) -> frozenset[int]:
    """Ids of the constructor calls that only a pure function is taken from, on the spot."""
    return frozenset(
        id(receiver)
        for module in project.modules.values()
        for receiver in _receivers(module.tree)
        if _has_no_parent(receiver)
    )


def _receivers(tree: ast.Module) -> Iterator[ast.expr]:
    """What ``apply`` is called on, and what ``init`` is called on or taken from."""
    for node in walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="apply", value=value)):
                yield value
            case ast.Attribute(attr="init", value=value):
                yield value


def _has_no_parent(node: ast.expr) -> bool:
    """Whether a class is called by its name, with ``parent=None`` in so many words."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return False
    if any(one.arg is None for one in node.keywords):
        return False
    parents = [one.value for one in node.keywords if one.arg == "parent"]
    return len(parents) == 1 and is_none_literal(parents[0])
