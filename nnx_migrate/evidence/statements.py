"""Names of classes that tell statements of one qualified name apart.

Of several class statements with one ``__qualname__`` in a file, the last keeps that name; the others are
``name:1``, ``name:2``, ... in the order of their lines, as in the migration map. A running class is
found among them by the lines of its methods.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

UNTOLD = "?"  # the number of a class of which nobody knows which statement made it


def statement_name(cls: type) -> str:
    """The qualified name of a class, numbered where its file has several statements of that name."""
    name = cls.__qualname__
    if "<locals>" not in name:
        return name
    codes = list(method_codes(cls))
    home = getattr(sys.modules.get(cls.__module__), "__file__", None)
    file = codes[0].co_filename if codes else home
    spans = _spans("".join(linecache.getlines(file))).get(name, ()) if file else ()
    if len(spans) < 2:
        return name
    lines = {code.co_firstlineno for code in codes}
    inside = [number for number, span in enumerate(spans, 1) if lines & {*span}]
    number = inside[0] if len(inside) == 1 else None
    return name if number == len(spans) else f"{name}:{number or UNTOLD}"


def method_codes(cls: type) -> Iterator[CodeType]:
    """Code of the methods that the class statement itself defines, wrappers taken off."""
    for value in vars(cls).values():
        function: Any = getattr(value, "__wrapped__", value)
        while hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType) and code.co_qualname == f"{cls.__qualname__}.{code.co_name}":
            yield code


@lru_cache(maxsize=64)
def _spans(text: str) -> dict[str, tuple[range, ...]]:
    """Lines of every class statement of a file, by qualified name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, list[range]] = {}
    for name, node in _classes(tree, ""):
        found.setdefault(name, []).append(range(node.lineno, (node.end_lineno or 0) + 1))
    return {name: tuple(sorted(spans, key=lambda one: one.start)) for name, spans in found.items()}


def _classes(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for node in ast.iter_child_nodes(tree):
        inside = prefix
        if isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}", node
            inside = f"{prefix}{node.name}."
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = f"{prefix}{node.name}.<locals>."
        elif isinstance(node, ast.Lambda):
            inside = f"{prefix}<lambda>.<locals>."
        yield from _classes(node, inside)
