"""Reads of an attribute that may be None, where the code around them says which it is.

::

    if self.bias is not None:  # asks
        y = y + self.bias      # has one
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.source.walking import each, is_none_literal, walk


def asking(method: ast.FunctionDef) -> frozenset[int]:
    """Ids of what ``is None`` and ``is not None`` compare."""
    return frozenset(id(one.left) for one in _tests(method))


def certain_reads(method: ast.FunctionDef) -> frozenset[int]:
    """Ids of the reads of attributes that stand where a test has shown that they are not None."""
    return frozenset(
        id(node)
        for one in walk(method)
        if isinstance(one, ast.If | ast.IfExp)
        for test in _tests(one.test)
        if test is one.test
        for part in _where_present(one, test)
        for node in each(part, ast.Attribute)
        if node.attr == test.left.attr and ast.dump(node) == ast.dump(test.left)  # type: ignore[attr-defined]
    )


def _tests(node: ast.AST) -> Iterator[ast.Compare]:
    for one in walk(node):
        if isinstance(one, ast.Compare) and isinstance(one.left, ast.Attribute):
            is_test = isinstance(one.ops[0], ast.Is | ast.IsNot)
            if is_test and len(one.ops) == 1 and is_none_literal(one.comparators[0]):
                yield one


def _where_present(branch: ast.If | ast.IfExp, test: ast.Compare) -> list[ast.AST]:
    """What runs where the attribute is not None."""
    side = branch.body if isinstance(test.ops[0], ast.IsNot) else branch.orelse
    return [*side] if isinstance(side, list) else [side]
