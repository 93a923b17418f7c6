"""Strings that name ``flax.linen`` for the program: modules to import, targets to patch, types.

A string that is nothing but a dotted name below ``flax.linen`` names it wherever it stands, but as
a statement of its own (a docstring). Elsewhere in a string the name is prose, except in annotations.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

_NAME = re.compile(r"flax\.linen(?:\.\w+)*\.?")
_INSIDE = re.compile(r"\bflax\.linen\b")
_WORDS = re.compile(r"(?<![\w.])flax\.linen\b")


def module_strings(tree: ast.Module, nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """String constants and f-strings whose ``flax.linen`` has to change."""
    quoted = {id(one) for one in _annotated(nodes)}
    skipped = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    parts = {id(part) for one in nodes if isinstance(one, ast.JoinedStr) for part in one.values}
    found: list[ast.expr] = []
    for node in nodes:
        if id(node) in skipped or id(node) in parts:
            continue
        text = _start(node)
        if text is None:
            continue
        named = _NAME.fullmatch(text) is not None
        if named or (id(node) in quoted and _INSIDE.search(text)):
            assert isinstance(node, ast.expr)
            found.append(node)
    return found


def renamed(words: str) -> str:
    """The words of such a string (quotes included) with the new name."""
    return _WORDS.sub("nnx_migrate.linen", words, count=0)


def _start(node: ast.AST) -> str | None:
    """The text of a string; of an f-string the text that it begins with."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str() as text), *_]):
            return text if text.endswith(".") else None
    return None


def _annotated(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Strings inside annotations."""
    for node in nodes:
        for name in ("annotation", "returns"):
            annotation = getattr(node, name, None)
            if isinstance(annotation, ast.expr):
                yield from ast.walk(annotation)
