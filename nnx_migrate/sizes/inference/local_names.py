"""Locals of the user's methods that have the name of a constructor argument for a size.

Statements of compact methods move into ``__init__``, locals and all: there such a local would hide
the argument, unless it is the same size (``in_features = x.shape[-1]``).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.source.walking import walk


def is_taken(analysis: ClassAnalysis, text: str, path: str, sizes: Collection[str]) -> bool:
    """Whether a method uses the name ``text`` for something else.

    Args:
      path: the call argument that the size is of.
      sizes: the size as expression texts, one for each axis in use.
    """
    found = list(_uses(analysis, text))
    loads = [one for one in found if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    if len(loads) < len(found) and _is_whole_shape(analysis, text, path):
        return False
    if not loads:
        return bool(found)
    return any(analysis.interpreter.statics.get(id(one)) not in sizes for one in loads)


def _uses(analysis: ClassAnalysis, text: str) -> Iterator[ast.Name | ast.arg]:
    for node in _nodes(analysis):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) if name == text:
                yield node


def _is_whole_shape(analysis: ClassAnalysis, text: str, path: str) -> bool:
    """Whether every assignment to ``text`` gives it the whole shape of the call argument."""
    values = [
        value
        for node in _nodes(analysis)
        if isinstance(node, ast.Assign)
        for value in [node.value]
        if any(isinstance(one, ast.Name) and one.id == text for one in walk(node.targets[0]))
    ]
    return bool(values) and all(ast.unparse(one) == f"{path}.shape" for one in values)


def _nodes(analysis: ClassAnalysis) -> Iterator[ast.AST]:
    for cls in analysis.root.info.mro:
        for method in cls.methods.values():
            yield from walk(method)
