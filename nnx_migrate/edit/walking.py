"""Walking LibCST nodes: their fields read directly, which costs a tenth of ``node.children``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

from nnx_migrate.edit.syntax import cst

# Fields that hold white space, comments and punctuation alone.
_BLANK = frozenset(
    {
        *("comma", "dot", "equal", "footer", "header", "indent", "leading_lines", "lbrace"),
        *("lbracket", "lines_after_decorators", "lpar", "newline", "rbrace", "rbracket", "rpar"),
        *("semicolon", "star", "trailing_whitespace", "whitespace", "lines_after_else"),
    }
)
# Fields that LibCST declares behind those that their text stands before.
_OPENING = ("leading_lines", "lines_after_decorators", "header", "lpar", "lbrace", "lbracket")
_ORDERS = {
    "Arg": (
        *("star", "whitespace_after_star", "keyword", "equal", "value", "whitespace_after_arg"),
        "comma",
    ),
    "Call": ("lpar", "func", "whitespace_after_func", "whitespace_before_args", "args", "rpar"),
    "Subscript": (
        *("lpar", "value", "whitespace_after_value", "lbracket", "slice", "rbracket", "rpar"),
    ),
}


def _in_order(kind: Any) -> tuple[str, ...]:
    known = _ORDERS.get(kind.__name__)
    if known is not None:
        return known
    names = [one.name for one in fields(kind)]
    return tuple(sorted(names, key=lambda name: name not in _OPENING))


@cache
def _names(kind: Any, *, code: bool) -> tuple[str, ...]:
    names = _in_order(kind)
    if not code:
        return tuple(names)
    return tuple(one for one in names if one not in _BLANK and not one.startswith("whitespace"))


class _Nodes(dict[type, bool]):
    """Whether values of a type are nodes: ``isinstance`` would ask an abstract class each time."""

    def __missing__(self, kind: type) -> bool:
        self[kind] = issubclass(kind, cst.CSTNode)
        return self[kind]


_IS_NODE = _Nodes()


def children(node: Any, *, code: bool = False) -> list[Any]:
    """The nodes in a node, in order.

    Args:
        code: leave out white space, comments and punctuation.
    """
    kind: Any = type(node)
    found: list[Any] = []
    for name in _names(kind, code=code):
        value = getattr(node, name)
        if isinstance(value, list | tuple):
            found += [one for one in value if _IS_NODE[type(one)]]
        elif _IS_NODE[type(value)]:
            found.append(value)
    return found


def comments_in(node: Any) -> list[str]:
    """The comments inside a node, in order."""
    found: list[str] = []
    todo = [node]
    while todo:
        one = todo.pop()
        kind = type(one)
        if kind is cst.Comment:
            found.append(one.value)
        elif kind is cst.Name:
            todo += reversed((*one.lpar, *one.rpar))  # (  # a comment, then the name
        elif kind is not cst.SimpleWhitespace:
            todo += reversed(children(one))
    return found


# ---- the names that new code reads

_LONGEST = 200  # a string that is longer is prose


def names_in(node: Any) -> set[str]:
    """The names that stand in an expression, those of attributes and keywords left out."""
    return {one.value for one in _words(node) if isinstance(one, cst.Name)}


def loaded_names(module: Any) -> set[str]:
    """Names in a file, also those in a quoted annotation or ``__all__``; prose has spaces."""
    found: set[str] = set()
    for one in _words(module):
        if isinstance(one, cst.Name):
            found.add(one.value)
        elif len(one.value) < _LONGEST:
            text = str(one.evaluated_value)
            if text and " " not in text.strip():
                found.add(text.split(".")[0].split("[")[0].strip("'\""))
    return found


def _words(node: Any) -> Iterator[Any]:
    """Names and strings of code; not those that imports, attributes and keywords are called."""
    todo = [node]
    while todo:
        one = todo.pop()
        kind = type(one)  # none of these has subclasses, and their metaclass makes isinstance slow
        if kind in (cst.Name, cst.SimpleString):
            yield one
        elif kind in (cst.Attribute, cst.Arg):
            todo.append(one.value)
        elif kind is cst.Param:
            todo += [part for part in (one.annotation, one.default) if part is not None]
        elif kind in (cst.FunctionDef, cst.ClassDef):
            todo += [part for part in children(one, code=True) if part is not one.name]
        elif kind not in (cst.Import, cst.ImportFrom):
            todo += children(one, code=True)
