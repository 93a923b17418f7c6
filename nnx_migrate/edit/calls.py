"""Calls as LibCST nodes: arguments with their comments, on one line or on lines of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nnx_migrate.edit.expressions import Expression, Written, element, operand, written
from nnx_migrate.edit.syntax import cst

UNIT = "    "


@dataclass(frozen=True)
class Comments:
    """The comments of an argument: on lines above it, behind it, on lines below it."""

    above: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    below: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.above or self.beside or self.below)

    @property
    def all(self) -> tuple[str, ...]:
        """All of them in order."""
        return (*self.above, *self.beside, *self.below)


NONE = Comments()


@dataclass(frozen=True)
class Argument:
    """An argument of a call, with the comments that belong to it."""

    value: Expression
    keyword: str | None = None
    star: str = ""
    comments: Comments = NONE


def named(keyword: str, value: Written) -> Argument:
    """``keyword=value``."""
    return Argument(written(value), keyword)


def call(
    function: Written,
    *arguments: Argument | Written,
    left: Sequence[str] = (),
    unit: str = UNIT,
) -> cst.Call:
    """``function(arguments)``.

    On one line, but where comments belong to an argument on lines of their own, one for each.

    Args:
        left: comments of arguments that are no longer there.
    """
    given = [_argument(one) for one in arguments]
    if left and given:
        first = given[0]
        given[0] = replace(
            first, comments=replace(first.comments, above=(*left, *first.comments.above))
        )
    made = cst.Call(operand(written(function)), [_arg(one) for one in given])
    if any(one.comments for one in given):
        return on_lines(made, [one.comments for one in given], unit)
    args = [one.with_changes(comma=_SPACED()) for one in made.args[:-1]]
    return made.with_changes(args=[*args, *made.args[-1:]])


def _argument(one: Argument | Written) -> Argument:
    return one if isinstance(one, Argument) else Argument(written(one))


def _arg(one: Argument) -> cst.Arg:
    value = one.value if one.star else element(one.value)
    if one.keyword is None:
        return cst.Arg(value, star=one.star)  # type: ignore[arg-type]
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(value, keyword=cst.Name(one.keyword), equal=tight)


def _SPACED() -> cst.Comma:
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def on_lines(made: cst.Call, comments: Sequence[Comments], unit: str) -> cst.Call:
    """The call with each argument on a line of its own, its comments around it."""
    args = []
    for index, one in enumerate(made.args):
        is_last = index + 1 == len(made.args)
        following = NONE if is_last else comments[index + 1]
        own = comments[index]
        behind, more = own.beside[:1], own.beside[1:]
        between = (*more, *own.below, *following.above)
        indent = "" if is_last else unit
        comma = cst.Comma(whitespace_after=_line_end(behind, between, unit, indent))
        args.append(one.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace("")))
    before = _line_end((), comments[0].above, unit, unit)
    return made.with_changes(args=args, whitespace_before_args=before)


def _line_end(
    behind: Sequence[str], between: Sequence[str], unit: str, indent: str
) -> cst.ParenthesizedWhitespace:
    first = cst.TrailingWhitespace()
    if behind:
        first = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment(behind[0]))
    lines = [
        cst.EmptyLine(indent=True, whitespace=cst.SimpleWhitespace(unit), comment=cst.Comment(one))
        for one in between
    ]
    return cst.ParenthesizedWhitespace(first, lines, True, cst.SimpleWhitespace(indent))


# ---- reading


def comments_in(node: Any) -> list[str]:
    """The comments inside a node, in order."""
    if isinstance(node, cst.Comment):
        return [node.value]
    if isinstance(node, cst.Name):
        return []
    return [found for child in node.children for found in comments_in(child)]


def argument_comments(node: cst.Call) -> list[Comments]:
    """The comments of each argument of a call as it is written."""
    gaps = [_gap(node.whitespace_before_args)]
    for one in node.args:
        after: list[tuple[list[str], list[str]]] = [_gap(one.whitespace_after_arg)]
        if isinstance(one.comma, cst.Comma):
            after += [_gap(one.comma.whitespace_before), _gap(one.comma.whitespace_after)]
        gaps.append(_joined(after))
    found = []
    for index in range(len(node.args)):
        above = gaps[0][0] + gaps[0][1] if index == 0 else gaps[index][1]
        beside, below = gaps[index + 1]
        is_last = index + 1 == len(node.args)
        found.append(Comments(tuple(above), tuple(beside), tuple(below) if is_last else ()))
    return found


def _gap(space: Any) -> tuple[list[str], list[str]]:
    """Comments on the line that ends, and those on lines after it."""
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return [], []
    ending = [space.first_line.comment.value] if space.first_line.comment else []
    return ending, [one.comment.value for one in space.empty_lines if one.comment]


def _joined(gaps: list[tuple[list[str], list[str]]]) -> tuple[list[str], list[str]]:
    """The comments of several gaps in a row as of one; only the first can end the line."""
    ending, lines = gaps[0]
    for behind, below in gaps[1:]:
        if lines:
            lines = [*lines, *behind, *below]
        else:
            ending, lines = [*ending, *behind], below
    return ending, lines
