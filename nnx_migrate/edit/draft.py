"""A file that changes: parsed once, edited in one visit from the leaves up, written once."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from nnx_migrate.edit.data import EditError
from nnx_migrate.edit.pairing import Unpaired, pair

Edit = Callable[[Any], Any]  # the node, edits inside it already made -> its replacement

_LONE_RETURN = re.compile(r"\r(?!\n)")


@dataclass(frozen=True)
class Line:
    """A statement to stand on a line of its own, with the comments that come along."""

    statement: cst.BaseSmallStatement
    above: Sequence[str] = ()  # comments on lines of their own
    beside: str | None = None  # the comment behind it


class Draft:
    """Edits of one file.

    Args:
        text: the file, newlines as they are on disk.
        tree: ``ast.parse(text)``; edits are asked for by its nodes.
    """

    def __init__(self, text: str, tree: ast.Module) -> None:
        self._text = text
        self._tree = tree
        self._edits: dict[ast.AST, Edit] = {}
        self._lines: dict[ast.AST, Callable[[Any], Sequence[Line]]] = {}

    def change(self, place: ast.AST, edit: Edit) -> None:
        """Replace one node by what ``edit`` makes of it."""
        if place in self._edits or place in self._lines:
            raise EditError(f"line {getattr(place, 'lineno', 0)}: two edits of one place")
        self._edits[place] = edit

    def change_lines(self, statement: ast.stmt, edit: Callable[[Any], Sequence[Line]]) -> None:
        """Replace a simple statement by several; the first takes its place and its comments."""
        if statement in self._edits or statement in self._lines:
            raise EditError(f"line {statement.lineno}: two edits of one statement")
        self._lines[statement] = edit

    def write(self) -> str:
        """The text with all edits made.

        Raises:
            EditError: LibCST does not read the file, or a place was not found.
        """
        if not self._edits and not self._lines:
            return self._text
        if _LONE_RETURN.search(self._text):
            raise EditError("it has line ends of a carriage return alone; use \\n or \\r\\n")
        try:
            module = cst.parse_module(self._text)
        except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError) as error:
            raise EditError(f"LibCST cannot read it: {_one_line(error)}") from error
        places = [*self._edits, *self._lines]
        try:
            pairs = pair(self._tree, module, places)
        except Unpaired as error:
            raise EditError(f"its two syntax trees differ ({error}); please report this") from error
        missing = [one for one in places if one not in pairs]
        if missing:
            line = getattr(missing[0], "lineno", 0)
            raise EditError(f"line {line}: {type(missing[0]).__name__} not found in LibCST's tree")
        edits = {pairs[place]: edit for place, edit in self._edits.items()}
        lines = {pairs[place]: edit for place, edit in self._lines.items()}
        return module.visit(_Apply(edits, lines, pairs.values())).code


class _Apply(cst.CSTTransformer):
    """Applies edits; what holds none of them is not visited."""

    def __init__(
        self,
        edits: dict[cst.CSTNode, Edit],
        lines: dict[cst.CSTNode, Callable[[Any], Sequence[Line]]],
        way: Iterable[cst.CSTNode],
    ) -> None:
        super().__init__()
        self._edits = edits
        self._lines = lines
        self._way = set(way)

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.SimpleStatementLine | cst.SimpleStatementSuite):
            return any(one in self._way for one in node.body)
        if isinstance(node, _KNOWN):
            return node in self._way
        return not isinstance(node, _BLANK)

    def on_leave(self, original: cst.CSTNode, updated: Any) -> Any:
        edit = self._edits.get(original)
        if edit is not None:
            updated = edit(updated)
        if self._lines and isinstance(original, cst.SimpleStatementLine):
            return self._split(original, updated)
        if self._lines and isinstance(original, cst.SimpleStatementSuite):
            return updated.with_changes(body=self._joined(original, updated))
        return updated

    def _split(self, original: cst.SimpleStatementLine, updated: Any) -> Any:
        """A line whose statement becomes several; with ``;`` in it they stay on the line."""
        if not any(one in self._lines for one in original.body):
            return updated
        if len(original.body) > 1:
            return updated.with_changes(body=self._joined(original, updated))
        first, *more = self._lines[original.body[0]](updated.body[0])
        above = [*updated.leading_lines, *_above(first.above)]
        head = updated.with_changes(body=[first.statement], leading_lines=above)
        if first.beside is not None:
            head = _beside(head, first.beside)
        return cst.FlattenSentinel([head, *(_own_line(one) for one in more)])

    def _joined(self, original: Any, updated: Any) -> list[cst.BaseSmallStatement]:
        found: list[cst.BaseSmallStatement] = []
        for old, new in zip(original.body, updated.body, strict=True):
            edit = self._lines.get(old)
            made = [Line(new)] if edit is None else list(edit(new))
            if any(one.above or one.beside for one in made):
                raise EditError("an import with comments inside shares its line: give it its own")
            parts: list[Any] = [one.statement for one in made]
            parts = [one.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for one in parts]
            parts[-1] = parts[-1].with_changes(semicolon=new.semicolon)
            found += parts
        return found


# Nodes that pairing knows: whether an edit lies inside is known of them.
_KNOWN = (cst.BaseExpression, cst.BaseSmallStatement, cst.BaseCompoundStatement)
_BLANK = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline)


def _above(comments: Sequence[str]) -> list[cst.EmptyLine]:
    return [cst.EmptyLine(comment=cst.Comment(one)) for one in comments]


def _own_line(line: Line) -> cst.SimpleStatementLine:
    made = cst.SimpleStatementLine(body=[line.statement], leading_lines=_above(line.above))
    return made if line.beside is None else _beside(made, line.beside)


def _beside(line: Any, comment: str) -> Any:
    """The line with a comment behind it, or above it where one is already."""
    trailing = line.trailing_whitespace
    if trailing.comment is not None:
        return line.with_changes(leading_lines=[*line.leading_lines, *_above([comment])])
    changed = trailing.with_changes(
        whitespace=cst.SimpleWhitespace("  "), comment=cst.Comment(comment)
    )
    return line.with_changes(trailing_whitespace=changed)


def _one_line(error: BaseException) -> str:
    if isinstance(error, cst.ParserSyntaxError):
        return f"{error.message} (line {error.raw_line})"
    return " ".join(str(error).split())
