"""Statements as LibCST nodes, and what becomes of the lines of those that go.

A statement's replacement is a sequence of statements. An empty one (`GONE`) leaves its comments to
the statement that follows; `TAKEN` says that they stand elsewhere already.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from nnx_migrate.edit.calls import comments_in
from nnx_migrate.edit.expressions import Expression, Written, element, written
from nnx_migrate.edit.syntax import cst

Statement: TypeAlias = "cst.BaseStatement"
Statements: TypeAlias = "Sequence[cst.BaseStatement]"


class _Taken(tuple[Any, ...]):
    """No statement, and no comment of it is left."""


GONE: tuple[Any, ...] = ()
TAKEN: tuple[Any, ...] = _Taken()


def line(small: cst.BaseSmallStatement) -> Statement:
    """A simple statement on a line of its own."""
    return cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])


def run(value: Written) -> Statement:
    """An expression as a statement."""
    return line(cst.Expr(written(value)))


def assign(target: Any, value: Expression) -> Statement:
    """``target = value``."""
    place: Any = written(target)
    return line(cst.Assign([cst.AssignTarget(place)], value))


def skip() -> Statement:
    """``pass``."""
    return line(cst.Pass())


def result(value: Expression | None = None) -> Statement:
    """``return value``."""
    return line(cst.Return(value))


def block(body: Statements, unit: str | None = None) -> cst.IndentedBlock:
    """Statements one level deeper; ``pass`` where there are none."""
    return cst.IndentedBlock(list(body) or [skip()], indent=unit)


def when(
    test: Expression, body: Statements, orelse: Statements = (), unit: str | None = None
) -> Statement:
    """``if test:``; an ``orelse`` of one ``if`` becomes its ``elif``."""
    after: cst.If | cst.Else | None = None
    match orelse:
        case [cst.If(leading_lines=[]) as nested]:
            after = nested
        case [_, *_]:
            after = cst.Else(block(orelse, unit))
    return cst.If(test, block(body, unit), after)


def loop(target: Any, over: Expression, body: Statements, unit: str | None) -> Statement:
    """``for target in over:``."""
    return cst.For(target, over, block(body, unit))


def docstring(text: str) -> Statement:
    """A docstring in three quotes; ``text`` has its line ends and indentation."""
    return run(cst.SimpleString(f'"""{text}"""'))


def define(
    name: str,
    parameters: Sequence[cst.Param | str],
    body: Statements,
    *,
    decorators: Iterable[Expression] = (),
    unit: str | None = None,
) -> cst.FunctionDef:
    """A function; ``*`` among the parameters separates those that go by keyword alone."""
    params = [
        cst.Param(cst.Name(one)) if isinstance(one, str) and one != "*" else one
        for one in parameters
    ]
    return cst.FunctionDef(
        name=cst.Name(name),
        params=signature(params),
        body=block(body, unit),
        decorators=[cst.Decorator(one) for one in decorators],
        lines_after_decorators=[],
    )


def signature(params: Sequence[cst.Param | str]) -> cst.Parameters:
    """Parameters in order; those behind ``"*"`` go by keyword alone."""
    plain: list[Any] = list(params)
    at = plain.index("*") if "*" in plain else len(plain)
    star = cst.ParamStar() if at + 1 < len(plain) else cst.MaybeSentinel.DEFAULT
    return cst.Parameters(plain[:at], star_arg=star, kwonly_params=plain[at + 1 :])


def parameter(
    name: str, annotation: Expression | None = None, default: Expression | None = None
) -> cst.Param:
    """``name: annotation = default``."""
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    loose = cst.AssignEqual(cst.SimpleWhitespace(" "), cst.SimpleWhitespace(" "))
    return cst.Param(
        cst.Name(name),
        annotation=None if annotation is None else cst.Annotation(annotation),
        default=None if default is None else element(default),
        equal=cst.MaybeSentinel.DEFAULT
        if default is None
        else (tight if annotation is None else loose),
    )


# ---- comments and blank lines


def blank() -> cst.EmptyLine:
    """An empty line."""
    return cst.EmptyLine(indent=False)


def comment_lines(comments: Iterable[str]) -> list[cst.EmptyLine]:
    """Comments on lines of their own."""
    return [cst.EmptyLine(comment=cst.Comment(one)) for one in comments]


def all_comments(node: Any) -> list[str]:
    """Every comment of a statement, those above and behind it included."""
    return comments_in(node)


def after(lines: Iterable[cst.EmptyLine], statement: Any) -> Any:
    """The statement with more lines above it."""
    return statement.with_changes(leading_lines=[*lines, *statement.leading_lines])


def commented(statement: Any, above: Sequence[str], beside: str | None = None) -> Any:
    """The statement with comments above it and one behind it, above as well where it has one."""
    if beside is not None and isinstance(statement, cst.SimpleStatementLine):
        trailing = statement.trailing_whitespace
        if trailing.comment is None:
            space = cst.SimpleWhitespace("  ")
            changed = trailing.with_changes(whitespace=space, comment=cst.Comment(beside))
            statement, beside = statement.with_changes(trailing_whitespace=changed), None
    more = (*above, *([] if beside is None else [beside]))
    return after(comment_lines(more), statement) if more else statement


def without_blank(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Lines from the first comment on."""
    first = next((i for i, one in enumerate(lines) if one.comment is not None), len(lines))
    return list(lines[first:])


def rewritten_block(
    pairs: Iterable[tuple[Any, Sequence[Any] | None]], *, opens: bool = False
) -> tuple[list[Any], list[cst.EmptyLine]]:
    """The statements of a block and the lines that are left below them.

    Args:
        pairs: each statement as it is now, and what it becomes; None: itself.
        opens: whether no blank line is wanted at the beginning.
    """
    found: list[Any] = []
    above: list[cst.EmptyLine] | None = None  # what statements that are gone leave
    for node, made in pairs:
        made = [node] if made is None else made
        if not made:
            above = _joined(above, _left(node, made), is_first=not found and opens)
            continue
        first, *more = made
        if above is not None:
            lines = _joined(above, first.leading_lines, is_first=not found and opens)
            first, above = first.with_changes(leading_lines=lines), None
        found += [first, *more]
    return found, [one for one in above or [] if one.comment is not None]


def _left(node: Any, made: Sequence[Any]) -> list[cst.EmptyLine]:
    """The lines that a statement which is gone leaves behind."""
    if made is TAKEN:
        return [one for one in node.leading_lines if one.comment is None]
    inside = comments_in(node.with_changes(leading_lines=[]))
    return [*node.leading_lines, *comment_lines(inside)]


def _joined(
    above: list[cst.EmptyLine] | None, lines: Sequence[cst.EmptyLine], *, is_first: bool
) -> list[cst.EmptyLine]:
    """Lines below others; blank ones do not pile up."""
    if above is None:
        return list(lines)
    ends_blank = above[-1].comment is None if above else is_first
    if ends_blank:
        first = next((i for i, one in enumerate(lines) if one.comment is not None), None)
        lines = [] if first is None else lines[first:]
    return [*above, *lines]


def is_definition(node: ast.AST) -> bool:
    """Whether it is a function or class."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
