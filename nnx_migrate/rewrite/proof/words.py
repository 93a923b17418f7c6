"""Words that code says of models: what asks for more than their methods, what stands around ``init``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from nnx_migrate.constructs import is_linen
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import walk

# What asks a model for more than its methods.
_INSIDE = frozenset({"capture_intermediates", "intercept_methods", "module_paths"})
_STARTS = frozenset({"init", "init_with_output", "lazy_init"})


def said(node: ast.AST) -> Iterator[str]:
    """Attributes, keywords and one-word strings."""
    match node:
        case ast.Attribute(attr=word) | ast.keyword(arg=str() as word):
            yield word
        case ast.Constant(value=str() as word) if word.isidentifier():
            yield word


@lru_cache(maxsize=1)  # every attempt of a run asks
def asking_inside(project: Project) -> Mapping[str, list[tuple[ast.AST, str]]]:
    """By module, the nodes that ask a model for more than its methods, and the words they do it by."""
    found: dict[str, list[tuple[ast.AST, str]]] = {}
    for module in project.modules.values():
        for node in module.nodes:
            word = next((one for one in said(node) if one in _INSIDE), None)
            if word is not None:
                found.setdefault(module.name, []).append((node, word))
    return found


@lru_cache(maxsize=1)  # every attempt of a run asks
def said_around_starts(project: Project) -> frozenset[str]:
    """What is said in top-level statements that call ``init`` and say which method makes variables."""
    found: set[str] = set()
    for module in project.modules.values():
        for statement in module.tree.body:
            nodes = walk(statement)
            if any(_starts(project, module, node) for node in nodes):
                found.update(word for node in nodes for word in said(node))
    return frozenset(found)


def _starts(project: Project, module: Module, node: ast.AST) -> bool:
    """Whether a call makes variables by another method than ``__call__``."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name), keywords=keywords) if name in _STARTS:
            if any(one.arg in ("method", None) for one in keywords):
                return True
            return is_linen(project.resolve(node.func, Scope(module)))
        case ast.Call(func=ast.Name()):
            symbol = project.resolve(node.func, Scope(module)) or ""
            return is_linen(symbol) and symbol.rpartition(".")[2] in _STARTS
    return False
