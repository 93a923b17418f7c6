"""An expression on one line, whatever lines it was written on.

An argument that moves keeps the text it had, and with it the indentation of its old place. Where nothing but
white space stands between its parts, it can be laid out anew.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

_NOTHING = cst.SimpleWhitespace("")
_SPACE = cst.SimpleWhitespace(" ")


def flatten(node: Any) -> Any:
    """The node on one line. Comments inside are lost, and strings over several lines stay so."""
    return node.visit(_Flat())


class _Flat(cst.CSTTransformer):
    """White space over lines becomes none behind and before brackets, and a blank elsewhere."""

    def on_leave(self, original: cst.CSTNode, updated: Any) -> Any:
        match updated:
            case cst.ParenthesizedWhitespace():
                return _SPACE
            case cst.SimpleWhitespace(value=value) if "\n" in value:
                return _SPACE
            case cst.Call():
                return _flatten_brackets(updated, original, "args", "whitespace_before_args")
            case cst.Tuple() | cst.List() | cst.Set() | cst.Dict():
                return _flatten_brackets(updated, original, "elements")
            case cst.LeftParen() | cst.LeftSquareBracket() | cst.LeftCurlyBrace() if _ends_line(
                original, "whitespace_after"
            ):
                return updated.with_changes(whitespace_after=_NOTHING)
            case cst.RightParen() | cst.RightSquareBracket() | cst.RightCurlyBrace() if _ends_line(
                original, "whitespace_before"
            ):
                return updated.with_changes(whitespace_before=_NOTHING)
            case cst.Dot() if _ends_line(original, "whitespace_before"):
                return updated.with_changes(whitespace_before=_NOTHING)
        return updated


def _ends_line(node: Any, field: str) -> bool:
    return isinstance(getattr(node, field), cst.ParenthesizedWhitespace)


def _closing(node: Any) -> Any:
    """The closing bracket of a display; of a call there is none, and an argument has the line end."""
    match node:
        case cst.List(rbracket=closing) | cst.Dict(rbrace=closing) | cst.Set(rbrace=closing):
            return closing
        case cst.Tuple(rpar=[*_, closing]):
            return closing
    return cst.RightParen()


def _flatten_brackets(updated: Any, original: Any, field: str, opening: str | None = None) -> Any:
    """A call or display without the comma and the line ends of its last element."""
    if opening is not None and _ends_line(original, opening):
        updated = updated.with_changes(**{opening: _NOTHING})
    elements = list(getattr(updated, field))
    if not elements:
        return updated
    last, old = elements[-1], getattr(original, field)[-1]
    if isinstance(last, cst.Arg) and _ends_line(old, "whitespace_after_arg"):
        last = last.with_changes(whitespace_after_arg=_NOTHING)
    is_exploded = _ends_line(_closing(original), "whitespace_before") or (
        isinstance(old.comma, cst.Comma) and _ends_line(old.comma, "whitespace_after")
    )
    if isinstance(old.comma, cst.Comma) and is_exploded:
        is_single = isinstance(updated, cst.Tuple) and len(elements) == 1
        last = last.with_changes(comma=cst.Comma() if is_single else cst.MaybeSentinel.DEFAULT)
    return updated.with_changes(**{field: [*elements[:-1], last]})
