"""Which expressions of a class read the shapes of arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.source.walking import names_in, walk

_READS = ("shape", "ndim")


def shape_reads(analysis: ClassAnalysis) -> frozenset[int]:
    """Ids of expressions that read a shape, also through a local that holds what was read.

    ``__init__`` has no arrays: where the value is known otherwise, its text takes the place.
    """
    return frozenset(
        id(node) for method in analysis.root.info.every_method for node in _reads(method)
    )


def _reads(method: ast.FunctionDef) -> Iterator[ast.AST]:
    if method.name == "setup":
        return  # its arrays exist in ``__init__``, too
    made = set(_parameters(method))
    holders = _holders(method, made)
    for node in walk(method):
        if isinstance(node, ast.Name):
            if node.id in holders and isinstance(node.ctx, ast.Load):
                yield node
        elif isinstance(node, ast.expr) and _has_shape(node, made):
            yield node


def _parameters(method: ast.FunctionDef) -> Iterator[str]:
    """Locals that hold a parameter or variable, which ``__init__`` makes."""
    for node in walk(method):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=attr)),
            ) if attr in ("param", "variable"):
                yield name


def _holders(method: ast.FunctionDef, shape_names: set[str]) -> set[str]:
    """Locals that hold nothing but what was read of shapes."""
    good: set[str] = set()
    other: set[str] = set()
    for node in walk(method):
        if isinstance(node, ast.Assign):
            group = good if _has_shape(node.value, shape_names) else other
            group.update(name for target in node.targets for name in names_in(target))
        elif isinstance(node, ast.AugAssign | ast.For | ast.comprehension):
            other.update(names_in(node.target))
    return good - other


def _has_shape(node: ast.AST, shape_names: set[str]) -> bool:
    """Whether an expression reads a shape of an array that only the call has."""
    return any(
        isinstance(one, ast.Attribute)
        and one.attr in _READS
        and not ast.unparse(one.value).startswith("self.")
        and not (isinstance(one.value, ast.Name) and one.value.id in shape_names)
        for one in walk(node)
    )
