"""Applies edits to a node in one visit; what holds none of them is not visited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import libcst as cst

from nnx_migrate.edit.expressions import code_of, in_quotes
from nnx_migrate.edit.fitting import Place, Unrenderable, fit
from nnx_migrate.edit.statements import (
    GONE,
    after,
    comment_lines,
    rewritten_block,
    skip,
    with_comments_around,
)
from nnx_migrate.edit.visiting import Kinds, may_hold_edits
from nnx_migrate.edit.walking import comments_in


def apply(
    node: Any,
    places: Sequence[Place],
    way: set[int],
    pairs: Mapping[int, cst.CSTNode],
    make: Callable[[Place], Any],
    refit: Callable[[Any, Any], Any],
) -> Any:
    """``node`` with the edits at ``places`` made.

    Args:
        way: ids of the LibCST nodes that lead to the places.
        pairs: LibCST nodes by the id of their ``ast`` node.
        make: the replacement at a place.
        refit: lays out a line, as it was and with its edits, within the width of the file.
    """
    missing = [one.node for one in places if id(one.node) not in pairs]
    if missing:
        reason = f"a {type(missing[0]).__name__} has no position of its own"
        raise Unrenderable(missing[0], reason)
    edits = {id(pairs[id(one.node)]): one for one in places}
    return node.visit(_Apply(edits, way, node, make, refit))


# Nodes that are more to a visit than whether they are edited; most are none of them.
_HAS_OWN_WAY = Kinds(
    *(cst.IndentedBlock, cst.Module, cst.SimpleStatementLine, cst.SimpleStatementSuite),
    *(cst.FunctionDef, cst.ClassDef, cst.FormattedString, cst.FormattedStringExpression),
)


class _Apply(cst.CSTTransformer):
    def __init__(
        self,
        edits: dict[int, Place],
        way: set[int],
        root: cst.CSTNode,
        make: Callable[[Place], Any],
        refit: Callable[[Any, Any], Any],
    ) -> None:
        super().__init__()
        self._edits, self._way, self._root, self._make = edits, way, root, make
        self._refit = refit
        self._classes: set[int] = set()  # ids of the bodies of classes
        self._quotes: list[str] = []  # of the f-strings around, outermost first
        self._last: Place | None = None  # whose replacement was put in last
        self._done: dict[int, Any] = {}  # replacements, each made once

    def on_visit(self, node: cst.CSTNode) -> bool:
        if _HAS_OWN_WAY[type(node)]:
            if isinstance(node, cst.FormattedString):
                self._quotes.append(node.end)
            if isinstance(node, cst.ClassDef):
                self._classes.add(id(node.body))
        if node is self._root:
            return True
        if id(node) in self._edits:
            return False
        return may_hold_edits(node, lambda one: id(one) in self._way)

    def on_leave(self, original: cst.CSTNode, updated: Any) -> Any:
        if _HAS_OWN_WAY[type(original)]:
            if isinstance(original, cst.IndentedBlock | cst.Module):
                return self._block(original, updated)
            if isinstance(original, cst.SimpleStatementLine):
                return self._refit(original, updated)
            if isinstance(original, cst.SimpleStatementSuite):
                return self._suite(original, updated)
            if isinstance(original, cst.FunctionDef | cst.ClassDef):
                return self._with_decorators(original, updated)
            if isinstance(original, cst.FormattedStringExpression):
                return self._field(original, updated)
            self._quotes.pop()
        place = self._edits.get(id(original))
        if place is None or original is self._root or _is_statement(original):
            return updated
        made = self._replacement(place)
        if isinstance(original, cst.ImportAlias):
            return cst.FlattenSentinel(made)
        if made is GONE:
            return updated
        self._last = place
        made = fit(made, original, place)
        return _in_string(made, place, self._quotes) if self._quotes else made

    def _replacement(self, place: Place) -> Any:
        key = id(place.node)
        if key not in self._done:
            self._done[key] = self._make(place)
        return self._done[key]

    def _field(self, original: Any, updated: Any) -> Any:
        """``{x=}`` of an f-string shows the text of the expression."""
        if original.equal is not None and updated.expression is not original.expression:
            assert self._last is not None
            raise Unrenderable(self._last.node, "the text of this expression is part of the string")
        return updated

    # ---- statements

    def _block(self, original: Any, updated: Any) -> Any:
        made = [self._statement(old) for old in original.body]
        if all(one is None for one in made):
            return updated
        body, left = rewritten_block(
            zip(updated.body, made, strict=True), opens=id(original) in self._classes
        )
        footer = [*left, *updated.footer] if left else updated.footer
        is_empty = not body and isinstance(original, cst.IndentedBlock)
        return updated.with_changes(body=body if not is_empty else [skip()], footer=footer)

    def _statement(self, old: Any) -> Sequence[Any] | None:
        """What a statement of a block becomes; None: itself."""
        place = self._edits.get(id(old))
        if place is not None:
            found: Sequence[Any] = self._replacement(place)
            return found
        if not isinstance(old, cst.SimpleStatementLine):
            return None
        if not any(id(one) in self._edits for one in old.body):
            return None
        if len(old.body) == 1:
            return in_place_of(old, self._replacement(self._edits[id(old.body[0])]))
        return self._split_line(old)

    def _split_line(self, old: cst.SimpleStatementLine) -> Sequence[Any]:
        """Statements of one line: each gets its own."""
        found: list[Any] = []
        for small in old.body:
            place = self._edits.get(id(small))
            if place is None:
                changed: Any = small.visit(self)
                changed = changed.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
                found.append(cst.SimpleStatementLine([changed]))
            else:
                found += self._replacement(place)
        return in_place_of(old, found)

    def _suite(self, original: cst.SimpleStatementSuite, updated: Any) -> Any:
        """``def f(): pass`` becomes a block when a statement in it is replaced."""
        if not any(id(one) in self._edits for one in original.body):
            return updated
        found: list[Any] = []
        for small, new in zip(original.body, updated.body, strict=True):
            place = self._edits.get(id(small))
            new = new.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            found += [cst.SimpleStatementLine([new])] if place is None else self._replacement(place)
        return cst.IndentedBlock(found or [skip()], header=original.trailing_whitespace)

    def _with_decorators(self, original: Any, updated: Any) -> Any:
        """A definition without the decorators that go; their comments stay above it."""
        removals = [
            place is not None and self._replacement(place) is GONE
            for place in (self._edits.get(id(one.decorator)) for one in original.decorators)
        ]
        if not any(removals):
            return updated
        decorators: list[Any] = []
        above: list[cst.EmptyLine] = []
        for one, is_gone in zip(updated.decorators, removals, strict=True):
            if is_gone:
                above += comment_lines(comments_in(one))
            else:
                decorators.append(after(above, one) if above else one)
                above = []
        lines = [*above, *updated.lines_after_decorators]
        if decorators:
            return updated.with_changes(decorators=decorators, lines_after_decorators=lines)
        return updated.with_changes(
            decorators=[],
            leading_lines=[*updated.leading_lines, *lines],
            lines_after_decorators=[],
        )


def _is_statement(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement)


def in_place_of(line: Any, statements: Sequence[Any]) -> Sequence[Any]:
    """Statements in the place of a line, with its comments; no statements as they are."""
    if not statements:
        return statements
    if not isinstance(line, cst.SimpleStatementLine):
        return statements
    first, *more = statements
    trailing = line.trailing_whitespace
    if isinstance(first, cst.SimpleStatementLine) and first.trailing_whitespace.comment is None:
        first = first.with_changes(trailing_whitespace=trailing)
    elif trailing.comment is not None:
        first = with_comments_around(first, [trailing.comment.value])
    return [
        after(line.leading_lines, first),
        *(_with_line_end(one, trailing.newline) for one in more),
    ]


def _with_line_end(statement: Any, newline: cst.Newline) -> Any:
    """A new line with the line end of the one in whose place it stands."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return statement
    trailing = statement.trailing_whitespace
    if trailing.newline.value is not None:
        return statement
    return statement.with_changes(trailing_whitespace=trailing.with_changes(newline=newline))


def _in_string(replacement: Any, place: Place, quotes: Sequence[str]) -> Any:
    """A replacement inside of f-strings with such ``quotes``, its own strings in others.

    Before Python 3.12 an expression in an f-string has no quotes of it, and no backslashes.
    """
    found = replacement.visit(_QuoteChange(quotes))
    text = code_of(found)
    if any(one in text for one in (*quotes, "\\", "#", "\n")):
        raise Unrenderable(place.node, "an expression inside this f-string cannot be replaced")
    return found


class _QuoteChange(cst.CSTTransformer):
    """Strings in quotes that the f-strings around do not have."""

    def __init__(self, quotes: Sequence[str]) -> None:
        super().__init__()
        self._quotes = quotes
        self._other = next((one for one in ("'", '"') if one not in quotes), "")

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        if updated_node.quote not in self._quotes or not self._other:
            return updated_node
        return in_quotes(updated_node, self._other)
