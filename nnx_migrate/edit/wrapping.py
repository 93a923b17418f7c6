"""Statements laid out within the width of their file, as formatters do.

What fits stands on one line. What does not has the elements of its last brackets on the next line, or, where
these do not fit there, each on a line of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from nnx_migrate.edit.expressions import code_of
from nnx_migrate.edit.page import Page
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.walking import comments_in

_LAST_COMMA = re.compile(r",\s*\n\s*[)\]}]")  # formatters keep what ends so on its lines


def wrap(statement: Any, indent: int, page: Page, *, is_moved: bool = False) -> Any:
    """A statement laid out anew when it does not fit, or has the line ends of another place.

    Those with comments or strings over several lines in them stay.

    Args:
        indent: columns in front of the statement.
        is_moved: whether its parts come from elsewhere.
    """
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return statement
    small = statement.body[0]
    value = getattr(small, "value", None)
    text = code_of(small)
    stays = _fits(text, indent, page) and not (is_moved and "\n" in text)
    if value is None or stays or comments_in(small):
        return statement
    flat = _on_one_line(small).value
    if "\n" in code_of(flat):
        return statement
    start = indent + len(code_of(small.with_changes(value=flat))) - len(code_of(flat))
    laid = _Writer(page, indent).laid(flat, 0, start, 0)
    return statement.with_changes(body=[small.with_changes(value=laid)])


def refit(old: Any, new: Any, indent: int, page: Page) -> Any:
    """A line with edits in it, laid out anew where they made it too long, or short enough for one line."""
    if not isinstance(new, cst.SimpleStatementLine) or len(old.body) != 1 or len(new.body) != 1:
        return new
    text = code_of(old.body[0])
    if not _fits(text, indent, page):
        return new
    needed_lines = "\n" in text and not _fits(code_of(_on_one_line(old.body[0])), indent, page)
    return _join(new, indent, page) if needed_lines else wrap(new, indent, page)


def _on_one_line(small: Any) -> Any:
    from nnx_migrate.edit.flattening import flatten

    value = getattr(small, "value", None)
    return small if value is None else small.with_changes(value=flatten(value))


def _join(statement: Any, indent: int, page: Page) -> Any:
    """A statement on one line, if it fits there and neither a comment nor a last comma keeps its lines."""
    small = statement.body[0]
    if comments_in(small) or _LAST_COMMA.search(code_of(small)):
        return wrap(statement, indent, page)
    flat = _on_one_line(small)
    text = code_of(flat)
    fits = "\n" not in text and _fits(text, indent, page)
    return statement.with_changes(body=[flat]) if fits else wrap(statement, indent, page)


def _fits(text: str, indent: int, page: Page) -> bool:
    return all(indent + len(line) <= page.width for line in text.splitlines())


@dataclass(frozen=True)
class _Writer:
    """Lays out expressions of one line; depths count from the statement's indentation."""

    page: Page
    indent: int

    def laid(self, node: Any, depth: int, start: int, after: int) -> Any:
        """The node within the width, if its brackets allow it.

        Args:
            depth: of the line that it begins on.
            start: the column that it begins at.
            after: columns that follow it on its last line.
        """
        if start + len(code_of(node)) + after <= self.page.width:
            return node
        if node.lpar and not isinstance(node, cst.Tuple):
            return self._in_parentheses(node, depth)
        match node:
            case cst.Call(args=[_, *_]) if start + len(code_of(node.func)) < self.page.width:
                return self._call(node, depth)
            case cst.Call():
                return self._chain(node, depth, start, after)
            case cst.List(elements=[_, *_]):
                return node.with_changes(
                    lbracket=cst.LeftSquareBracket(whitespace_after=self._end(depth + 1)),
                    elements=self._elements(node.elements, depth),
                )
            case cst.Tuple(lpar=[_], elements=[_, *_]):
                return node.with_changes(
                    lpar=[cst.LeftParen(whitespace_after=self._end(depth + 1))],
                    elements=self._elements(node.elements, depth),
                )
            case cst.Dict(elements=[_, *_]) | cst.Set(elements=[_, *_]):
                return node.with_changes(
                    lbrace=cst.LeftCurlyBrace(whitespace_after=self._end(depth + 1)),
                    elements=self._elements(node.elements, depth),
                )
            case cst.Attribute(value=value):
                behind = after + len(code_of(node)) - len(code_of(value))
                return node.with_changes(value=self.laid(value, depth, start, behind))
            case cst.BinaryOperation(right=right):
                before = start + len(code_of(node)) - len(code_of(right))
                return node.with_changes(right=self.laid(right, depth, before, after))
        return node

    def _chain(self, node: cst.Call, depth: int, start: int, after: int) -> cst.Call:
        """A call of what a call gave, ``lazy(Net, ...)(3)``, where that alone is too long."""
        made = node.with_changes(func=self.laid(node.func, depth, start, len("(")))
        *_, last = code_of(made).splitlines()
        width = self.indent + len(last) + after
        is_short = "\n" in code_of(made.func) and width <= self.page.width
        return made if is_short or not node.args else self._call(made, depth)

    def _call(self, node: cst.Call, depth: int) -> cst.Call:
        is_bare = isinstance(node.args[-1].value, cst.GeneratorExp)  # it takes no comma behind it
        text = ", ".join(code_of(_without_comma(one)) for one in node.args)
        if is_bare or self._column(depth + 1) + len(text) <= self.page.width:
            last = node.args[-1].with_changes(
                comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=self._end(depth)
            )
            args = [*node.args[:-1], last]
        else:
            args = self._elements(node.args, depth)
        return node.with_changes(whitespace_before_args=self._end(depth + 1), args=args)

    def _elements(self, elements: Any, depth: int) -> list[Any]:
        """Elements of brackets or arguments, each on a line of its own."""
        found = []
        for index, one in enumerate(elements):
            bare = _without_comma(one)
            before = len(code_of(bare)) - len(code_of(one.value))
            value = self.laid(one.value, depth + 1, self._column(depth + 1) + before, 1)
            following = depth if index + 1 == len(elements) else depth + 1
            comma = cst.Comma(whitespace_after=self._end(following))
            found.append(bare.with_changes(value=value, comma=comma))
        return found

    def _in_parentheses(self, node: Any, depth: int) -> Any:
        """What stands in parentheses on a line of its own."""
        left, right = node.lpar[-1], node.rpar[0]
        return node.with_changes(
            lpar=[*node.lpar[:-1], left.with_changes(whitespace_after=self._end(depth + 1))],
            rpar=[right.with_changes(whitespace_before=self._end(depth)), *node.rpar[1:]],
        )

    def _column(self, depth: int) -> int:
        return self.indent + depth * len(self.page.inner.expandtabs())

    def _end(self, depth: int) -> cst.ParenthesizedWhitespace:
        return _line_end(self.page.inner * depth)


def _without_comma(one: Any) -> Any:
    changed = one.with_changes(comma=cst.MaybeSentinel.DEFAULT)
    if isinstance(changed, cst.Arg):
        return changed.with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))
    return changed


def _line_end(indent: str) -> cst.ParenthesizedWhitespace:
    space = cst.SimpleWhitespace(indent)
    return cst.ParenthesizedWhitespace(cst.TrailingWhitespace(), [], True, space)


def wrapped_function(function: cst.FunctionDef, indent: int, page: Page) -> cst.FunctionDef:
    """A function with one parameter on a line, when its head is too long."""
    head = f"def {function.name.value}({code_of(function.params)}):"
    if "\n" not in head and _fits(head, indent, page):
        return function
    deeper = page.unit if len(page.unit.expandtabs()) >= 4 else page.unit * 2
    end = cst.Comma(whitespace_after=_line_end(deeper))
    last = cst.Comma(whitespace_after=_line_end(""))
    params = function.params
    plain = [one.with_changes(comma=end) for one in params.params]
    keyword = [one.with_changes(comma=end) for one in params.kwonly_params]
    star = params.star_arg
    if isinstance(star, cst.ParamStar):
        star = star.with_changes(comma=end)
    if keyword:
        keyword[-1] = keyword[-1].with_changes(comma=last)
    elif plain:
        plain[-1] = plain[-1].with_changes(comma=last)
    changed = params.with_changes(params=plain, kwonly_params=keyword, star_arg=star)
    return function.with_changes(params=changed, whitespace_before_params=_line_end(deeper))
