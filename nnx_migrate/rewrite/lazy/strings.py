"""Strings that name ``flax.linen`` for the program: modules to import, targets to patch, types.

A string that is nothing but a dotted name below ``flax.linen`` names it wherever it stands, but as
a statement of its own (a docstring). Elsewhere in a string the name is prose, except in annotations.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from nnx_migrate.source.walking import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TEXTS = (ast.Constant, ast.JoinedStr)
_ANNOTATED = (*_FUNCTIONS, ast.AnnAssign, ast.arg)
_NAME = re.compile(r"flax\.linen(?:\.\w+)*\.?")
_INSIDE = re.compile(r"\bflax\.linen\b")
_WORDS = re.compile(r"(?<![\w.])flax\.linen\b")


def module_strings(nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """String constants and f-strings whose ``flax.linen`` has to change."""
    quoted: set[int] = set()
    skipped: set[int] = set()  # statements of their own, and parts of f-strings
    found: list[ast.expr] = []
    for node in nodes:  # what holds a node comes before it
        if isinstance(node, _TEXTS):
            if id(node) not in skipped and _is_name(node, id(node) in quoted):
                found.append(node)
            if isinstance(node, ast.JoinedStr):
                skipped.update(map(id, node.values))
        elif isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, _ANNOTATED):
            annotation = node.returns if isinstance(node, _FUNCTIONS) else node.annotation
            if annotation is not None:
                quoted.update(map(id, walk(annotation)))
    return found


def rename_words(words: str) -> str:
    """The words of such a string (quotes included) with the new name."""
    return _WORDS.sub("nnx_migrate.linen", words, count=0)


def _is_name(node: ast.Constant | ast.JoinedStr, is_quoted: bool) -> bool:
    text = _start(node)
    if text is None or "flax.linen" not in text:
        return False
    return _NAME.fullmatch(text) is not None or (is_quoted and _INSIDE.search(text) is not None)


def _start(node: ast.AST) -> str | None:
    """The text of a string; of an f-string the text that it begins with."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str() as text), *_]):
            return text if text.endswith(".") else None
    return None
