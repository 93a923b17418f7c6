"""Opt-out comments: ``# nnx-migrate: keep`` on a class statement or on a line."""

from __future__ import annotations

import ast
import re

from nnx_migrate.source.project import Module

_COMMENT = re.compile(r"#\s*nnx-migrate:\s*keep\b")


def kept_lines(module: Module) -> frozenset[int]:
    """Lines (from 1) that carry the comment; read once, as every class of a file asks."""
    known = module.memo.get(__name__)
    if not isinstance(known, frozenset):
        known = module.memo[__name__] = _kept_lines(module)
    return known


def _kept_lines(module: Module) -> frozenset[int]:
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


def is_kept(module: Module, node: ast.ClassDef, lines: frozenset[int]) -> bool:
    """Whether the comment stands on the class statement, above it, or inside the class."""
    if not lines:
        return False
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    last = node.end_lineno or node.lineno
    above = first - 1 in lines and _is_comment(module, first - 1)
    return above or any(first <= line <= last for line in lines)


def _is_comment(module: Module, line: int) -> bool:
    """Whether a line holds nothing but a comment."""
    start = module.lines.starts[line - 1]
    return module.text[start : module.lines.line_end(start)].lstrip().startswith("#")


def unchangeable(
    module: Module, node: ast.FunctionDef | ast.Lambda, targets: frozenset[int]
) -> str | None:
    """Why a function has to stay as it is, if it has to.

    Args:
      targets: ``id`` of the modules that may change.
    """
    if id(module) not in targets:
        return "is not in a file to rewrite"
    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return "is kept as it is" if kept_lines(module) & {*lines} else None
