"""The same code formatted as few people would: comments, continuations, tabs, semicolons."""

from __future__ import annotations

import ast
import re

from hypothesis import strategies as st

STYLES = (
    "plain", "plain", "plain", "spread", "wrapped", "backslash", "semicolons", "tabs", "two",
    "comments", "blank",
)  # fmt: skip


@st.composite
def laid_out(draw: st.DrawFn, text: str) -> str:
    """A module's text in one of the styles."""
    style = draw(st.sampled_from(STYLES))
    every = draw(st.integers(1, 3))
    lines = text.split("\n")
    if style == "semicolons":
        lines = _joined(lines, every)
    elif style in ("tabs", "two"):
        unit = "\t" if style == "tabs" else "  "
        lines = [re.sub(r"^( {4})+", lambda m: unit * (len(m[0]) // 4), one) for one in lines]
    elif style != "plain":
        lines = [
            new if i % every == 0 and (new := _changed(one, style)) else one
            for i, one in enumerate(lines)
        ]
    result = "\n".join(lines)
    if draw(st.integers(0, 9)) == 9:
        result = result.rstrip("\n")
    return result.replace("\n", "\r\n") if draw(st.integers(0, 9)) == 9 else result


def _statement(line: str) -> ast.stmt | None:
    """The simple statement on a line of its own."""
    if not line.strip() or line.lstrip() != line.lstrip().strip(","):
        return None
    try:
        (found,) = ast.parse(line.strip()).body
    except (SyntaxError, ValueError):
        return None
    simple = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
    return found if isinstance(found, simple) else None


def _joined(lines: list[str], every: int) -> list[str]:
    """Neighbours of one block on one line."""
    result: list[str] = []
    for i, line in enumerate(lines):
        last = result[-1] if result else ""
        alike = len(last) - len(last.lstrip()) == len(line) - len(line.lstrip())
        if i % every == 0 and alike and _one(last) and _one(line) and line.startswith("  "):
            result[-1] = f"{last}; {line.lstrip()}"
        else:
            result.append(line)
    return result


def _one(line: str) -> bool:
    return _statement(line.rpartition(";")[2]) is not None


def _changed(line: str, style: str) -> str:
    found = _statement(line)
    if found is None or not line.startswith(" "):
        return ""
    text, pad = line.strip(), line[: len(line) - len(line.lstrip())]
    value = found.value
    if style == "comments":
        return f"{pad}# about {text[:12]!r}\n{line}  # so it is"
    if style == "blank":
        return f"{line}\n\n"
    if value is None or isinstance(found, ast.Expr):
        return ""
    head, tail = text[: value.col_offset], text[value.col_offset : value.end_col_offset]
    if head.endswith("(") or text[value.end_col_offset :]:
        return ""
    if style == "wrapped":
        return f"{pad}{head}(  # all of it\n{pad}    {tail}\n{pad})"
    if style == "backslash":
        return f"{pad}{head}\\\n{pad}        {tail}"
    return _spread(value, text, head, pad)


def _spread(value: ast.expr, text: str, head: str, pad: str) -> str:
    """Each argument of a call on a line, with a comment."""
    if not isinstance(value, ast.Call) or not (value.args or value.keywords):
        return ""
    function = ast.get_source_segment(text, value.func)
    parts = [ast.get_source_segment(text, one) for one in (*value.args, *value.keywords)]
    inside = "".join(f"{pad}    {one},  # argument {i}\n" for i, one in enumerate(parts))
    return f"{pad}{head}{function}(  # called\n{inside}{pad})"
