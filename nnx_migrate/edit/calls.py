"""Calls as LibCST nodes: arguments with their comments, on one line or on lines of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nnx_migrate.edit.expressions import (
    Expression,
    ExpressionLike,
    as_node,
    element,
    loose_types,
    operand,
)
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.walking import comments_in

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


def named(keyword: str, value: ExpressionLike) -> Argument:
    """``keyword=value``."""
    return Argument(as_node(value), keyword)


def call(
    function: ExpressionLike,
    *arguments: Argument | ExpressionLike,
    left: Sequence[str] = (),
    unit: str = UNIT,
) -> cst.Call:
    """``function(arguments)``.

    On one line, but where comments belong to an argument on lines of their own, one for each.

    Args:
        left: comments of arguments that are no longer there.
    """
    match arguments:
        case [cst.GeneratorExp(lpar=[]) as only]:
            return cst.Call(operand(as_node(function)), [cst.Arg(only)])
    nodes = [_argument(one) for one in arguments]
    if left and nodes:
        first = nodes[0]
        nodes[0] = replace(
            first, comments=replace(first.comments, above=(*left, *first.comments.above))
        )
    made = cst.Call(operand(as_node(function)), [as_arg(one) for one in nodes])
    if any(one.comments for one in nodes):
        return on_lines(made, [one.comments for one in nodes], unit)
    args = [one.with_changes(comma=_COMMA_SPACE()) for one in made.args[:-1]]
    return made.with_changes(args=[*args, *made.args[-1:]])


def _argument(one: Argument | ExpressionLike) -> Argument:
    return one if isinstance(one, Argument) else Argument(as_node(one))


def as_arg(one: Argument) -> cst.Arg:
    """The node of an argument, without spaces around its ``=``."""
    value = one.value if one.star else bare(element(one.value))
    if one.keyword is None:
        return cst.Arg(value, star=one.star)  # type: ignore[arg-type]
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(value, keyword=cst.Name(one.keyword), equal=tight)


def bare(value: Expression) -> Expression:
    """A value without the parentheses that it needs no more between those of a call."""
    is_needed = len(value.lpar) != 1 or isinstance(value, loose_types())
    if is_needed or any(comments_in(one) for one in (*value.lpar, *value.rpar)):
        return value
    return value.with_changes(lpar=[], rpar=[])


def _COMMA_SPACE() -> cst.Comma:
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def on_lines(call: cst.Call, comments: Sequence[Comments], unit: str) -> cst.Call:
    """The call with each argument on a line of its own, its comments around it."""
    args = []
    for index, one in enumerate(call.args):
        is_last = index + 1 == len(call.args)
        following = NONE if is_last else comments[index + 1]
        own = comments[index]
        behind, more = own.beside[:1], own.beside[1:]
        between = (*more, *own.below, *following.above)
        indent = "" if is_last else unit
        comma = cst.Comma(whitespace_after=_line_end(behind, between, unit, indent))
        args.append(one.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace("")))
    before = _line_end((), comments[0].above, unit, unit)
    return call.with_changes(args=args, whitespace_before_args=before)


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


def with_arguments(
    node: Any, more: Iterable[Argument | ExpressionLike], unit: str = UNIT, *, first: bool = False
) -> Any:
    """A call as it is written with further arguments, last or ``first``.

    What stands on lines of its own keeps doing so, and so do the new ones.
    """
    added = [_argument(one) for one in more]
    if not added:
        return node
    if not node.args or any(one.comments for one in added):
        known = _known_arguments(node)
        both = [*added, *known] if first else [*known, *added]
        made = call(node.func, *both, unit=unit)
        return made.with_changes(lpar=node.lpar, rpar=node.rpar)
    args = [as_arg(one) for one in added]
    if first:
        return node.with_changes(args=_leading(node, args))
    return node.with_changes(args=_following(node, args))


def with_comments(node: Any, comments: Sequence[str], unit: str = UNIT) -> Any:
    """A call with further comments above its first argument.

    Where its last argument is a call that has comments of its own they stand in that one.
    """
    if not comments:
        return node
    last = node.args[-1] if node.args else None
    if last is not None and isinstance(last.value, cst.Call) and comments_in(last.value):
        inner = last.with_changes(value=with_comments(last.value, comments, unit))
        return node.with_changes(args=[*node.args[:-1], inner])
    if not node.args:
        return node.with_changes(whitespace_before_args=_line_end((), comments, unit, ""))
    made = call(node.func, *_known_arguments(node), left=comments, unit=unit)
    return made.with_changes(lpar=node.lpar, rpar=node.rpar)


def _known_arguments(node: cst.Call) -> list[Argument]:
    return [
        Argument(one.value, one.keyword.value if one.keyword else None, one.star, comments)
        for one, comments in zip(node.args, argument_comments(node), strict=True)
    ]


def _leading(node: cst.Call, args: list[cst.Arg]) -> list[cst.Arg]:
    """Arguments before those of a call, each on a line of its own if those are."""
    before = node.whitespace_before_args
    comma = _COMMA_SPACE()
    if isinstance(before, cst.ParenthesizedWhitespace):
        plain = before.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
        comma = cst.Comma(whitespace_after=plain)
    return [*(one.with_changes(comma=comma) for one in args), *node.args]


def _following(node: cst.Call, args: list[cst.Arg]) -> list[cst.Arg]:
    """Arguments behind those of a call, each on a line of its own if those are."""
    *others, last = node.args
    tight = cst.SimpleWhitespace("")
    has_comma = isinstance(last.comma, cst.Comma)
    end = space_after(last)
    before: Any = node.whitespace_before_args
    if not isinstance(end, cst.ParenthesizedWhitespace):
        tail = last.comma if has_comma else cst.MaybeSentinel.DEFAULT
        between = [last, *args[:-1]]
        spaced = [one.with_changes(comma=_COMMA_SPACE()) for one in between]
        spaced[0] = spaced[0].with_changes(whitespace_after_arg=tight)
        final = args[-1].with_changes(comma=tail, whitespace_after_arg=end)
        if has_comma:
            final = final.with_changes(whitespace_after_arg=tight)
        return [*others, *spaced, final]
    opens = isinstance(before, cst.ParenthesizedWhitespace)
    indent = before.last_line if opens else cst.SimpleWhitespace(UNIT)
    inner = end.with_changes(last_line=indent)
    plain = end.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    first = last.with_changes(comma=cst.Comma(whitespace_after=inner), whitespace_after_arg=tight)
    line_end = cst.Comma(whitespace_after=plain.with_changes(last_line=indent))
    middle = [one.with_changes(comma=line_end) for one in args[:-1]]
    return [*others, first, *middle, args[-1].with_changes(comma=cst.Comma(whitespace_after=plain))]


def space_after(one: cst.Arg) -> Any:
    """The white space behind an argument and its comma."""
    return (
        one.comma.whitespace_after if isinstance(one.comma, cst.Comma) else one.whitespace_after_arg
    )


# ---- reading


def left_out(old: Any, *new: Any, used_comments: Iterable[str] = ()) -> list[str]:
    """The comments inside ``old`` that neither ``new`` nor ``used_comments`` has, in order."""
    present = Counter([*used_comments, *(comment for one in new for comment in comments_in(one))])
    left = []
    for comment in comments_in(old):
        if present[comment]:
            present[comment] -= 1
        else:
            left.append(comment)
    return left


def argument_comments(node: cst.Call) -> list[Comments]:
    """The comments of each argument of a call as it is written."""
    gaps = [_gap(node.whitespace_before_args)]
    for one in node.args:
        after: list[tuple[list[str], list[str]]] = [_gap(one.whitespace_after_arg)]
        if isinstance(one.comma, cst.Comma):
            after += [_gap(one.comma.whitespace_before), _gap(one.comma.whitespace_after)]
        gaps.append(_join(after))
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


def _join(gaps: list[tuple[list[str], list[str]]]) -> tuple[list[str], list[str]]:
    """The comments of several gaps in a row as of one; only the first can end the line."""
    ending, lines = gaps[0]
    for behind, below in gaps[1:]:
        if lines:
            lines = [*lines, *behind, *below]
        else:
            ending, lines = [*ending, *behind], below
    return ending, lines
