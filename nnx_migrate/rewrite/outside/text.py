"""Text of calls that gain arguments; comments and line breaks inside them stay."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.rewrite.rules.base import PLACEMENT, same_call
from nnx_migrate.source.spans import Lines

Text = Callable[[Renderer], str]


def with_first(function: str, first: Text, call: ast.Call) -> Text:
    """``function(first, <arguments of call>)``."""

    def text(renderer: Renderer) -> str:
        whole, old = renderer.inner(call), renderer.render(call.func)
        opening = re.match(r"[ \t]*\((\s*)", whole[len(old) :]) if whole.startswith(old) else None
        if opening is None or _placed(call):
            return same_call(function, call, renderer.render, _first(first(renderer), call))
        rest = whole[len(old) + opening.end() :]
        space = opening.group(1)
        if not call.args and not call.keywords:
            return f"{function}({first(renderer)})"
        return f"{function}({space}{first(renderer)},{space or ' '}{rest}"

    return text


def _first(first: str, call: ast.Call) -> list[str]:
    return [first] if not call.args and not call.keywords else []


def with_last(call: ast.Call, extra: Callable[[Renderer], list[str]]) -> Text:
    """The call with more keyword arguments at its end."""

    def text(renderer: Renderer) -> str:
        return _appended(renderer.inner(call), call, renderer, extra(renderer))

    return text


def _appended(whole: str, call: ast.Call, renderer: Renderer, extra: list[str]) -> str:
    plain = same_call(renderer.render(call.func), call, renderer.render, extra)
    if _placed(call) or not extra:
        return plain
    at = _end_of_arguments(whole)
    if at is None:
        return plain
    made = f"{whole[:at]}, {', '.join(extra)}{whole[at:]}"
    try:
        return made if ast.dump(_parsed(made)) == ast.dump(_parsed(plain)) else plain
    except SyntaxError:
        return plain


def _end_of_arguments(whole: str) -> int | None:
    """Offset just past the last argument of a call's text; None when it has none."""
    try:
        call = _parsed(whole)
    except SyntaxError:
        return None
    if not isinstance(call, ast.Call):
        return None
    lines = Lines(f"({whole})")
    ends = [lines.span(one).end for one in (*call.args, *call.keywords)]
    return max(ends) - 1 if ends else None


def _parsed(text: str) -> ast.expr:
    return ast.parse(f"({text})", mode="eval").body


def _placed(call: ast.Call) -> bool:
    """Whether ``name=`` or ``parent=`` is given, which NNX constructors do not take."""
    return any(one.arg in PLACEMENT for one in call.keywords)
