"""Source text with edits applied: spans are replaced, everything else stays byte-identical.

A :class:`Renderer` maps ``ast`` nodes (by ``id``) to replacements and renders any node of the file
with the edits inside it applied. A replacement is text, or a function of the renderer, so that
edits nest: the function renders the node's children (edits of their own included), and
``renderer.inner(node)`` is the node's own text with only the edits *inside* it.

A replaced expression is put in parentheses where its new text would bind differently. Inside an
f-string every edit is verified by parsing the result, because Python 3.11 reports unreliable
positions there; what cannot be verified raises :class:`Unrenderable`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.spans import Span

Replacement: TypeAlias = "str | Callable[[Renderer], str]"

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ATOMS = (
    ast.Name
    | ast.Attribute
    | ast.Call
    | ast.Subscript
    | ast.Constant
    | ast.List
    | ast.Dict
    | ast.Set
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.JoinedStr
)
# Fields of a parent that take any expression except a bare tuple, a walrus or a yield.
_OPEN_FIELDS = {
    ast.Call: ("args",),
    ast.keyword: ("value",),
    ast.Assign: ("value",),
    ast.AnnAssign: ("value", "annotation"),
    ast.AugAssign: ("value",),
    ast.Return: ("value",),
    ast.Expr: ("value",),
    ast.List: ("elts",),
    ast.Tuple: ("elts",),
    ast.Set: ("elts",),
    ast.Dict: ("values",),
    ast.Subscript: ("slice",),
    ast.If: ("test",),
    ast.While: ("test",),
    ast.Assert: ("test", "msg"),
    ast.For: ("iter",),
    ast.ListComp: ("elt",),
    ast.ClassDef: ("bases", "decorator_list"),
    ast.FunctionDef: ("decorator_list", "returns"),
    ast.arg: ("annotation",),
    ast.arguments: ("defaults", "kw_defaults"),
}


class Unrenderable(Exception):
    """An edit that cannot be placed reliably; carries the node and the reason."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        """Name the node's line in the message."""
        line = getattr(node, "lineno", None)
        where = f"line {line}: " if line else ""
        super().__init__(f"{where}{reason}")
        self.node = node
        self.reason = reason


@dataclass(frozen=True)
class _Edit:
    """A topmost edited node below some node, with its final text."""

    node: ast.AST
    span: Span
    text: str


@dataclass(frozen=True)
class Renderer:
    """Renders nodes of one module with ``edits`` (node ``id`` -> replacement) applied."""

    project: Project
    module: Module
    edits: Mapping[int, Replacement] = field(default_factory=dict)

    def with_edits(self, edits: Mapping[int, Replacement]) -> Renderer:
        """A copy with more edits; on the same node the new one wins."""
        return replace(self, edits={**self.edits, **edits})

    def without(self, *nodes: ast.AST) -> Renderer:
        """A copy that has no edit of ``nodes`` themselves (those inside them stay)."""
        dropped = {id(node) for node in nodes}
        return replace(self, edits={k: v for k, v in self.edits.items() if k not in dropped})

    def render(self, node: ast.AST) -> str:
        """Text of ``node``, its own edit and all edits inside it applied.

        Raises:
            Unrenderable: the node has no position, or an edit inside an f-string is not verifiable.
        """
        edit = self.edits.get(id(node))
        return self.inner(node) if edit is None else self._text(edit)

    def value(self, node: ast.expr) -> str:
        """Like ``render``, in parentheses where the text needs them to stand alone on a line."""
        text = self.render(node)
        if isinstance(node, ast.Starred) or _parse(text) is not None:
            return text
        return f"({text})" if _parse(f"({text})") is not None else text

    def inner(self, node: ast.AST) -> str:
        """Text of ``node`` with the edits inside it applied, ignoring an edit of the node itself.

        A function or class is rendered from its first decorator's ``@``.
        """
        if isinstance(node, ast.Module):
            return self._spliced(node, Span(0, len(self.module.text)))
        return self._spliced(node, self.span(node))

    def render_module(self) -> str:
        """The whole file with all edits applied."""
        return self.render(self.module.tree)

    def span(self, node: ast.AST) -> Span:
        """Where ``node`` stands; a function's or class' span begins at its first decorator's ``@``."""
        if not hasattr(node, "lineno"):
            raise Unrenderable(node, f"a {type(node).__name__} has no position of its own")
        try:
            span = self.module.lines.span(node)
        except (IndexError, UnicodeDecodeError) as error:
            raise Unrenderable(node, "its reported position is not in the file") from error
        if isinstance(node, _DEFINITIONS) and node.decorator_list:
            first = self.module.lines.span(node.decorator_list[0]).start
            return Span(self.module.text.rindex("@", 0, first), span.end)
        return span

    def _text(self, edit: Replacement) -> str:
        return edit if isinstance(edit, str) else edit(self)

    def _spliced(self, node: ast.AST, span: Span) -> str:
        parts: list[str] = []
        position = span.start
        for edit in sorted(self._edits_below(node), key=lambda one: one.span.start):
            if edit.span.start < position or edit.span.end > span.end:
                raise Unrenderable(edit.node, "its reported position overlaps another edit")
            parts += [self.module.text[position : edit.span.start], edit.text]
            position = edit.span.end
        return "".join([*parts, self.module.text[position : span.end]])

    def _edits_below(self, parent: ast.AST) -> Iterator[_Edit]:
        for name, child in _children(parent):
            edit = self.edits.get(id(child))
            if edit is not None:
                text = _fitted(self._text(edit), parent, name, child)
                yield _Edit(child, self.span(child), text)
            elif isinstance(child, ast.JoinedStr) and name != "format_spec":
                edits = tuple(self._edits_below(child))
                if edits:
                    yield _Edit(child, self.span(child), self._verified(child, edits))
            else:
                yield from self._edits_below(child)

    def _verified(self, string: ast.JoinedStr, edits: tuple[_Edit, ...]) -> str:
        """Text of an f-string with ``edits``, which must parse to exactly that f-string."""
        text = self._spliced_string(string, edits)
        found = _parse(text)
        expected = _substituted(string, edits)
        if expected is None or found is None or ast.dump(found) != ast.dump(expected):
            raise Unrenderable(string, "an expression inside this f-string cannot be replaced")
        return text

    def _spliced_string(self, string: ast.JoinedStr, edits: tuple[_Edit, ...]) -> str:
        span = self.span(string)
        text = self.module.text[span.start : span.end]
        end = span.end
        for edit in sorted(edits, key=lambda one: one.span.start, reverse=True):
            if edit.span.end > end or edit.span.start < span.start:
                raise Unrenderable(edit.node, "its position inside the f-string is not reliable")
            start = edit.span.start - span.start
            text = text[:start] + edit.text + text[edit.span.end - span.start :]
            end = edit.span.start
        return text


def _children(parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for name, value in ast.iter_fields(parent):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield name, child


def _parse(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _fitted(text: str, parent: ast.AST, name: str, child: ast.AST) -> str:
    """``text`` in parentheses if it would not stand as one operand where ``child`` stood."""
    if not isinstance(child, ast.expr) or isinstance(child, ast.Starred):
        return text
    shares_parentheses = (
        isinstance(child, ast.GeneratorExp)
        and isinstance(parent, ast.Call)
        and (child.end_lineno, child.end_col_offset) == (parent.end_lineno, parent.end_col_offset)
    )
    if shares_parentheses:
        return f"({text})"
    found = _parse(text)
    if found is None or _is_closed(found, text) or _is_open_field(found, parent, name):
        return text
    return f"({text})"


def _is_closed(expression: ast.expr, text: str) -> bool:
    """Whether the text is one operand: a name, a call, something in brackets."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, int | float):
        return False  # ``1.real`` is no attribute access; parenthesised where that matters
    if isinstance(expression, _ATOMS):
        return True
    body = text.strip()
    # A parenthesised expression starts after the text does, a parenthesised tuple with it.
    if isinstance(expression, ast.Tuple | ast.GeneratorExp):
        return expression.col_offset == 0 and body.startswith("(") and body.endswith(")")
    return (expression.lineno, expression.col_offset) != (1, 0) and body.startswith("(")


def _is_open_field(expression: ast.expr, parent: ast.AST, name: str) -> bool:
    if isinstance(expression, ast.Constant):
        return not (isinstance(parent, ast.Attribute) and name == "value")
    if isinstance(expression, ast.Tuple | ast.NamedExpr | ast.Yield | ast.YieldFrom):
        return False
    return name in _OPEN_FIELDS.get(type(parent), ())


def _substituted(string: ast.JoinedStr, edits: tuple[_Edit, ...]) -> ast.JoinedStr | None:
    """The f-string's tree with every edited node replaced by its parsed text."""
    memo: dict[int, object] = {}
    for edit in edits:
        parsed = _parse(edit.text)
        if parsed is None:
            return None
        memo[id(edit.node)] = parsed
    return copy.deepcopy(string, memo)
