"""Opt-out comments: ``# nnx-migrate: keep`` on a class statement or on a line."""

from __future__ import annotations

import ast
import re

from nnx_migrate.source.project import Module

_COMMENT = re.compile(r"#\s*nnx-migrate:\s*keep\b")


def kept_lines(module: Module) -> frozenset[int]:
    """Lines (from 1) that carry the comment."""
    if "nnx-migrate:" not in module.text:
        return frozenset()
    starts = module.lines.starts
    ends = [*starts[1:], len(module.text)]
    spans = zip(starts, ends, strict=True)
    return frozenset(
        number
        for number, (start, end) in enumerate(spans, 1)
        if _COMMENT.search(module.text, start, end)
    )


def is_kept(node: ast.ClassDef, lines: frozenset[int]) -> bool:
    """Whether the comment stands on the class statement, above it, or inside the class."""
    if not lines:
        return False
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return any(first - 1 <= line <= (node.end_lineno or node.lineno) for line in lines)
