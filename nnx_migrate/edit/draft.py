"""A file that changes: parsed once, edited in one visit from the leaves up, written once.

LibCST reads and writes whole statements of the module, those alone that hold an edit: the rest of
the text is not looked at.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from nnx_migrate.edit.data import EditError, Line
from nnx_migrate.edit.pairing import PairingError, pair
from nnx_migrate.edit.parsing import check_line_ends, parse
from nnx_migrate.edit.statements import comment_lines, with_comments_around
from nnx_migrate.edit.visiting import may_hold_edits

Edit = Callable[[Any], Any]  # the node, edits inside it already made -> its replacement

_CONTINUED = re.compile(r"[^#]*\\\r?\n")


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
        check_line_ends(self._text)
        parts = _parts(self._text, self._tree)
        firsts = [one.first for one in parts]
        places: list[list[ast.AST]] = [[] for _ in parts]
        for place in (*self._edits, *self._lines):
            places[bisect_right(firsts, getattr(place, "lineno", 0)) - 1].append(place)
        return "".join(map(self._write, parts, places))

    def _write(self, part: _Part, places: list[ast.AST]) -> str:
        """The text of one part with its edits made."""
        if not places:
            return part.text + part.rest
        module = parse(part.text, max(part.first, 1))
        if module.code != part.text:
            raise EditError(f"LibCST changes white space in what begins on line {part.first}")
        try:
            pairs = pair(ast.Module(part.statements, []), module, places)
        except PairingError as error:
            raise EditError(f"its two syntax trees differ ({error}); please report this") from error
        missing = [one for one in places if one not in pairs]
        if missing:
            line = getattr(missing[0], "lineno", 0)
            raise EditError(f"line {line}: {type(missing[0]).__name__} not found in LibCST's tree")
        edits = {pairs[one]: self._edits[one] for one in places if one in self._edits}
        lines = {pairs[one]: self._lines[one] for one in places if one in self._lines}
        newline = "\r\n" if "\r\n" in self._text else "\n"
        module = module.with_changes(default_newline=newline)
        return module.visit(_Apply(edits, lines, pairs.values())).code + part.rest


@dataclass(frozen=True)
class _Part:
    """Statements of the module that share lines, and what stands between them and the next ones."""

    first: int  # its line; 0 is what stands above the first statement
    text: str
    rest: str
    statements: list[ast.stmt]


def _parts(text: str, tree: ast.Module) -> list[_Part]:
    """The parts of a file, in order; together their texts are the file."""
    lines = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]  # where they begin
    firsts: list[int] = []
    groups: list[list[ast.stmt]] = []
    for one in tree.body:
        first = one.lineno
        if decorators := getattr(one, "decorator_list", None):
            first = decorators[0].lineno
            while first > 1 and text[lines[first - 1]] != "@":  # it may stand in parentheses
                first -= 1
        if groups and (one.col_offset or first == groups[-1][-1].end_lineno):
            groups[-1].append(one)  # behind a semicolon
        else:
            firsts.append(first)
            groups.append([one])
    found = [_Part(0, "", text[: lines[firsts[0] - 1] if firsts else None], [])]
    for first, after, group in zip(firsts, [*firsts[1:], len(lines)], groups, strict=True):
        start, end = lines[first - 1], lines[after - 1]
        last = group[-1].end_lineno or first
        while last < after - 1 and _CONTINUED.fullmatch(text, lines[last - 1], lines[last]):
            last += 1
        found.append(_Part(first, text[start : lines[last]], text[lines[last] : end], group))
    return found


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
        return may_hold_edits(node, self._way.__contains__)

    def on_leave(self, original: cst.CSTNode, updated: Any) -> Any:
        edit = self._edits.get(original)
        if edit is not None:
            updated = edit(updated)
        if self._lines and isinstance(original, cst.SimpleStatementLine):
            return self._split(original, updated)
        if self._lines and isinstance(original, cst.SimpleStatementSuite):
            return updated.with_changes(body=self._join(original, updated))
        return updated

    def _split(self, original: cst.SimpleStatementLine, updated: Any) -> Any:
        """A line whose statement becomes several; with ``;`` in it they stay on the line."""
        if not any(one in self._lines for one in original.body):
            return updated
        if len(original.body) > 1:
            return updated.with_changes(body=self._join(original, updated))
        first, *more = self._lines[original.body[0]](updated.body[0])
        above = [*updated.leading_lines, *comment_lines(first.above)]
        if first.beside is not None and updated.trailing_whitespace.comment is not None:
            above += comment_lines([first.beside])
            first = replace(first, beside=None)
        head = updated.with_changes(body=[first.statement], leading_lines=above)
        return cst.FlattenSentinel(
            [with_comments_around(head, (), first.beside), *(_own_line(one) for one in more)]
        )

    def _join(self, original: Any, updated: Any) -> list[cst.BaseSmallStatement]:
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


def _own_line(line: Line) -> cst.SimpleStatementLine:
    made = cst.SimpleStatementLine(body=[line.statement])
    own: cst.SimpleStatementLine = with_comments_around(made, line.above, line.beside)
    return own
