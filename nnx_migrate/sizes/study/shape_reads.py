"""Which expressions of a class read the shapes of arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.sizes.study.study import Study

_READS = ("shape", "ndim")


def shape_reads(study: Study) -> frozenset[int]:
    """Ids of expressions that read a shape, also through a local that holds what was read.

    ``__init__`` has no arrays: where the value is known otherwise, its text takes the place.
    """
    methods = [one for cls in study.root.info.mro for one in cls.methods.values()]
    return frozenset(id(node) for method in methods for node in _reads(method))


def _reads(method: ast.FunctionDef) -> Iterator[ast.AST]:
    held = _holders(method)
    for node in ast.walk(method):
        if isinstance(node, ast.Name):
            if node.id in held and isinstance(node.ctx, ast.Load):
                yield node
        elif isinstance(node, ast.expr) and _has_shape(node):
            yield node


def _holders(method: ast.FunctionDef) -> set[str]:
    """Locals that hold nothing but what was read of shapes."""
    good: set[str] = set()
    other: set[str] = set()
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            names = {
                one.id
                for target in node.targets
                for one in ast.walk(target)
                if isinstance(one, ast.Name)
            }
            (good if _has_shape(node.value) else other).update(names)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            other.add(node.target.id)
    loops = [one.target for one in ast.walk(method) if isinstance(one, ast.For | ast.comprehension)]
    other |= {one.id for target in loops for one in ast.walk(target) if isinstance(one, ast.Name)}
    return good - other


def _has_shape(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr in _READS for one in ast.walk(node))
