"""Indentation, line ends and gaps of the file, so that new lines look like the old ones."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.source.classes import ClassInfo

WIDTH = 100


@dataclass(frozen=True)
class Layout:
    """How the class' module is laid out.

    Attributes:
      newline: the end-of-line in use.
      indent: indentation of the class body.
      unit: one more level.
    """

    newline: str
    indent: str
    unit: str

    @property
    def body(self) -> str:
        """Indentation of a method body."""
        return self.indent + self.unit


def layout_of(cls: ClassInfo) -> Layout:
    """Layout of a class statement."""
    lines = cls.module.lines
    outer = _leading(cls, cls.node.lineno)
    first = cls.node.body[0]
    own_line = first.lineno != cls.node.lineno
    inner = _leading(cls, _first_line(first)) if own_line else outer + "    "
    unit = inner[len(outer) :] or "    "
    return Layout(lines.newline, inner, unit)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _leading(cls: ClassInfo, line: int) -> str:
    start = cls.module.lines.starts[line - 1]
    text = cls.module.text[start:]
    return text[: len(text) - len(text.lstrip(" \t\f"))]


def shifted(text: str, before: str, after: str, newline: str) -> str:
    """Move the continuation lines of ``text`` from indentation ``before`` to ``after``.

    Text with triple-quoted strings stays as it is: moving it would change the strings.
    """
    if before == after or "\n" not in text or '"""' in text or "'''" in text:
        return text
    first, *rest = text.split(newline)
    moved = [after + line[len(before) :] if line.startswith(before) else line for line in rest]
    return newline.join([first, *moved])


def statement_end(cls: ClassInfo, node: ast.AST, renderer: Renderer) -> int:
    """Offset after ``node`` and a comment on its last line."""
    end = renderer.span(node).end
    text = cls.module.text
    stop = end
    while stop < len(text) and text[stop] not in "\r\n":
        stop += 1
    rest = text[end:stop].strip()
    return stop if rest.startswith("#") else end


def block_text(cls: ClassInfo, body: Sequence[ast.stmt], renderer: Renderer) -> str:
    """Text of consecutive statements, gaps and comments between them kept."""
    parts: list[str] = []
    position = None
    for node in body:
        span = renderer.span(node)
        if position is not None:
            parts.append(cls.module.text[position : span.start])
        parts.append(renderer.render(node))
        position = span.end
    if body:
        parts.append(cls.module.text[span.end : statement_end(cls, body[-1], renderer)])
    return "".join(parts)


def comments_above(cls: ClassInfo, node: ast.stmt, renderer: Renderer) -> str:
    """The comment lines directly above ``node``, up to its own indentation."""
    text, lines = cls.module.text, cls.module.lines
    start = lines.line_start(renderer.span(node).start)
    top = start
    while top > 0:
        above = lines.line_start(top - 1)
        line = text[above:top].strip()
        if line and not line.startswith("#"):
            break
        top = above
    found = text[top:start].lstrip("\r\n")
    stripped = found.lstrip(" \t")
    if not stripped:
        return ""
    indent = text[start : renderer.span(node).start]
    return stripped + indent


def docstring_of(body: Sequence[ast.stmt]) -> ast.Expr | None:
    """The docstring statement that ``body`` begins with."""
    match body:
        case [ast.Expr(value=ast.Constant(value=str())) as first, *_]:
            return first
        case _:
            return None


def wrapped(line: str, indent: str, layout: Layout) -> str:
    """``line`` with its last call's arguments on lines of their own, when it is too long.

    Lines that already have line ends, and statements that are no call, stay as they are.
    """
    if len(line) <= WIDTH or "\n" in line:
        return line
    body = line[len(indent) :]
    try:
        statement = ast.parse(body).body[0]
    except SyntaxError:
        return line
    call = getattr(statement, "value", None)
    arguments: list[ast.AST] = []
    while isinstance(call, ast.Call):
        arguments = [*call.args, *call.keywords]
        inner = call.args[-1] if call.args and not call.keywords else None
        if not (isinstance(inner, ast.Call) and ast.unparse(call.func) == "setattr"):
            break
        call = inner
    if not isinstance(call, ast.Call) or not arguments or not body.isascii():
        return line
    head = body[: arguments[0].col_offset]  # type: ignore[attr-defined]
    last = arguments[-1].end_col_offset  # type: ignore[attr-defined]
    inner_indent = indent + layout.unit
    parts = [body[one.col_offset : one.end_col_offset] for one in arguments]  # type: ignore[attr-defined]
    filled = _filled(parts, inner_indent)
    return layout.newline.join([indent + head, *filled, indent + body[last:].lstrip()])


def _filled(parts: list[str], indent: str) -> list[str]:
    one_line = indent + ", ".join(parts)
    if len(one_line) <= WIDTH:
        return [one_line]
    return [f"{indent}{part}," for part in parts]


def indent_of(cls: ClassInfo, statement: ast.AST) -> str:
    """Indentation of the line on which ``statement`` starts."""
    start = cls.module.lines.starts[statement.lineno - 1]  # type: ignore[attr-defined]
    text = cls.module.text[start : start + 200]
    return text[: len(text) - len(text.lstrip(" \t"))]
