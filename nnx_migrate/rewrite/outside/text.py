"""Text of calls that gain arguments; comments and line breaks inside them stay."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable

from nnx_migrate.constructs.base import PLACEMENT
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.rewrite.texts import same_call
from nnx_migrate.source.spans import Lines

Text = Callable[[Renderer], str]


def with_first(function: str, first: Text, call: ast.Call) -> Text:
    """``function(first, <arguments of call>)``."""

    def text(renderer: Renderer) -> str:
        whole, old = renderer.inner(call), renderer.render(call.func)
        opening = re.match(r"[ \t]*\((\s*)", whole[len(old) :]) if whole.startswith(old) else None
        if opening is None or _placed(call):
            own = same_call("", call, renderer.render)[1:-1]
            return f"{function}({first(renderer)}{', ' * bool(own)}{own})"
        rest = whole[len(old) + opening.end() :]
        space = opening.group(1)
        if not call.args and not call.keywords:
            return f"{function}({first(renderer)})"
        return f"{function}({space}{first(renderer)},{space or ' '}{rest}"

    return text


def without_key(function: str, first: Text, call: ast.Call) -> Text:
    """``function(first, <arguments of init but its key>)``."""

    def text(renderer: Renderer) -> str:
        plain = copy.copy(call)
        plain.keywords = [one for one in call.keywords if one.arg != "rngs"]
        named = len(plain.keywords) < len(call.keywords)
        plain.args = call.args if named else call.args[1:]
        start = function + "(" + first(renderer)
        rest = same_call("", plain, renderer.render, keep_placement=True)[1:]
        if rest == ")":
            return f"{start})"
        whole = renderer.inner(call)
        found = None if named else _second(whole, len(call.args))
        if found is None:
            return f"{start}, {rest}"
        return f"{function}({found[0]}{first(renderer)},{found[0] or ' '}{found[1]}"

    return text


def _second(whole: str, positional: int) -> tuple[str, str] | None:
    """White space before the first argument of a call's text, and its text from the second on."""
    try:
        call = _parsed(whole)
    except SyntaxError:
        return None
    if not isinstance(call, ast.Call) or len(call.args) != positional:
        return None
    lines = Lines(f"({whole})")
    every = [*call.args, *call.keywords]
    opening = re.match(r"\s*\(\s*", whole[lines.span(call.func).end - 1 :])
    space = opening.group(0).partition("(")[2] if opening else ""
    text = whole[lines.span(every[1]).start - 1 :]
    try:
        same = ast.dump(_parsed(f"f({text}")) == ast.dump(_call_of(call))
    except SyntaxError:
        return None
    return (space, text) if same else None


def _call_of(call: ast.Call) -> ast.Call:
    name = ast.Name("f", ast.Load())
    return ast.Call(name, call.args[1:], call.keywords)


def with_last(function: str, call: ast.Call, extra: Callable[[Renderer], list[str]]) -> Text:
    """``function(<callee of call>, <its arguments>, <more keyword arguments>)``."""

    def text(renderer: Renderer) -> str:
        callee, more = renderer.render(call.func), extra(renderer)
        own = same_call("", call, renderer.render, more)[1:-1]
        plain = f"{function}({callee}, {own})" if own else f"{function}({callee})"
        whole = with_first(function, lambda _: callee, call)(renderer)
        at = None if _placed(call) else _end_of_arguments(whole)
        if at is None or not more:
            return plain
        made = f"{whole[:at]}, {', '.join(more)}{whole[at:]}"
        try:
            return made if ast.dump(_parsed(made)) == ast.dump(_parsed(plain)) else plain
        except SyntaxError:
            return plain

    return text


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
