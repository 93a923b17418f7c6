"""Statements as LibCST nodes, and what becomes of the lines of those that go.

A statement's replacement is a sequence of statements. An empty one (`GONE`) leaves its comments to
the statement that follows; `TAKEN` says that they stand elsewhere already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from nnx_migrate.edit.calls import as_arg, left_out, named
from nnx_migrate.edit.expressions import Expression, ExpressionLike, as_node
from nnx_migrate.edit.signatures import signature
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.walking import comments_in

Statement: TypeAlias = Any  # a statement on lines of its own, cst.BaseStatement
Statements: TypeAlias = Sequence[Any]


class _Nothing(tuple[Any, ...]):
    """No statement, and no comment of it is left."""


class _Leaving(tuple[Any, ...]):
    """No statement, but comments in its place."""

    comments: tuple[str, ...]


def leaving(*comments: str) -> tuple[Any, ...]:
    """What a statement becomes that only comments are left of."""
    made = _Leaving()
    made.comments = comments
    return made


GONE: tuple[Any, ...] = ()
TAKEN: tuple[Any, ...] = _Nothing()


def line(small: cst.BaseSmallStatement) -> Statement:
    """A simple statement on a line of its own."""
    return cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])


def run(value: ExpressionLike) -> Statement:
    """An expression as a statement."""
    return line(cst.Expr(as_node(value)))


def assign(target: Any, value: Expression) -> Statement:
    """``target = value``."""
    place: Any = as_node(target)
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


def as_block(body: Any) -> cst.IndentedBlock:
    """The body of a compound statement, on lines of its own."""
    if isinstance(body, cst.IndentedBlock):
        return body
    return cst.IndentedBlock([line(one) for one in body.body], header=body.trailing_whitespace)


def is_pass(node: Any) -> bool:
    """Whether it is ``pass`` alone."""
    return isinstance(node, cst.SimpleStatementLine) and [*map(type, node.body)] == [cst.Pass]


def with_last_statements(node: Any, more: Statements) -> Any:
    """A compound statement with further statements at the end of its block."""
    body = as_block(node.body)
    return node.with_changes(body=body.with_changes(body=[*body.body, *more]))


def with_first_statements(node: Any, more: Statements) -> Any:
    """A function with statements at the start of its body, behind its docstring."""
    body = as_block(node.body)
    found: list[Any] = list(body.body)
    at = 1 if found and is_docstring(found[0]) else 0
    first, *others = more
    if at < len(found) and at:  # the blank line below the docstring stays there
        above = [one for one in found[at].leading_lines if one.comment is None]
        rest = [one for one in found[at].leading_lines if one.comment is not None]
        first = first.with_changes(leading_lines=above)
        found[at] = found[at].with_changes(leading_lines=rest)
    return node.with_changes(
        body=body.with_changes(body=[*found[:at], first, *others, *found[at:]])
    )


def is_docstring(node: Any) -> bool:
    """Whether a statement is a string alone."""
    if not isinstance(node, cst.SimpleStatementLine) or not isinstance(node.body[0], cst.Expr):
        return False
    return isinstance(node.body[0].value, cst.SimpleString | cst.ConcatenatedString)


def docstring(text: str) -> Statement:
    """A docstring in three quotes; ``text`` has its line ends and indentation."""
    return run(cst.SimpleString(f'"""{text}"""'))


def with_base(node: cst.ClassDef, name: str) -> cst.ClassDef:
    """A class statement that inherits from ``name``, too, after all others."""
    made: cst.ClassDef = node.with_changes(bases=[*node.bases, cst.Arg(cst.Name(name))])
    return made


def without_keyword(node: cst.ClassDef, name: str) -> cst.ClassDef:
    """The class without a keyword of its first line: ``class Net(nn.Module, kw_only=True):``."""
    every = [*node.bases, *node.keywords]
    left = [one for one in every if getattr(one.keyword, "value", None) != name]
    if not left or len(left) == len(every):
        return node
    left[-1] = left[-1].with_changes(
        comma=every[-1].comma, whitespace_after_arg=every[-1].whitespace_after_arg
    )
    bases = [one for one in left if one.keyword is None]
    return node.with_changes(bases=bases, keywords=left[len(bases) :])


def with_keyword(node: cst.ClassDef, name: str, value: Expression) -> cst.ClassDef:
    """The class with one keyword more in its first line: ``class Net(nn.Module, metaclass=Meta):``."""
    every = [*node.bases, *node.keywords]
    space = cst.SimpleWhitespace(" ")
    last = every[-1].with_changes(comma=cst.Comma(whitespace_after=space))
    added = as_arg(named(name, value)).with_changes(comma=every[-1].comma)
    every[-1] = last
    return node.with_changes(
        bases=every[: len(node.bases)], keywords=[*every[len(node.bases) :], added]
    )


def define(
    name: str,
    parameters: Sequence[cst.Param | str],
    body: Statements,
    *,
    decorators: Iterable[Expression] = (),
    unit: str | None = None,
    like: cst.FunctionDef | None = None,
    left: Sequence[cst.EmptyLine] = (),
) -> cst.FunctionDef:
    """A function; ``*`` among the parameters separates those that go by keyword alone.

    Args:
        like: a function in whose place this one comes: its comments above and at its head stay.
        left: comments below the body.
    """
    params = [
        cst.Param(cst.Name(one)) if isinstance(one, str) and one != "*" else one
        for one in parameters
    ]
    suite = block(body, unit).with_changes(footer=list(left))
    made = cst.FunctionDef(
        name=cst.Name(name),
        params=signature(params),
        body=suite,
        decorators=[cst.Decorator(one) for one in decorators],
    )
    if like is None:
        return made
    old = as_block(like.body)
    head = [one for part in (*like.decorators, like.params) for one in comments_in(part)]
    lines = [*like.leading_lines, *like.lines_after_decorators, *comment_lines(head)]
    footer = [*left, *(one for one in old.footer if one.comment is not None)]
    suite = suite.with_changes(header=old.header, footer=footer)
    return made.with_changes(leading_lines=lines, body=suite)


def with_blank_lines(members: Statements) -> list[Any]:
    """Members of a class with a blank line between them."""
    return [*members[:1], *(after([blank()], one) for one in members[1:])]


def with_members(node: Any, members: Statements) -> Any:
    """A class with further members: before its first method, or at its end."""
    block_ = as_block(node.body)
    body: list[Any] = [one for one in block_.body if not (is_pass(one) and len(block_.body) == 1)]
    at = next((i for i, one in enumerate(body) if isinstance(one, cst.FunctionDef)), len(body))
    first, *more = members
    if at == len(body):
        first = after([blank()], first) if body else first
        added = [*body, first, *more]
    else:
        lines = body[at].leading_lines
        start = next((i for i, one in enumerate(lines) if one.comment is not None), len(lines))
        first = after(lines[:start], first)
        following = body[at].with_changes(leading_lines=[blank(), *lines[start:]])
        added = [*body[:at], first, *more, following, *body[at + 1 :]]
    passes = [one for one in block_.body if is_pass(one) and len(block_.body) == 1]
    comments = [one for statement in passes for one in comments_in(statement)]
    added[0] = after(comment_lines(comments), added[0])
    return node.with_changes(body=block_.with_changes(body=added))


def outer_comments(line: Any) -> list[str]:
    """The comments above and behind a statement."""
    trailing = line.trailing_whitespace.comment
    above = [one.comment.value for one in line.leading_lines if one.comment is not None]
    return [*above, *([] if trailing is None else [trailing.value])]


def with_aliases(alias: Any, more: Sequence[tuple[str, str | None]]) -> list[cst.ImportAlias]:
    """An imported name with further ones, each perhaps under another name."""
    made = [
        cst.ImportAlias(
            cst.Name(name), asname=None if bound is None else cst.AsName(cst.Name(bound))
        )
        for name, bound in more
    ]
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    every = [one.with_changes(comma=comma) for one in (alias, *made)]
    return [*every[:-1], every[-1].with_changes(comma=alias.comma)]


# ---- comments and blank lines


def blank() -> cst.EmptyLine:
    """An empty line."""
    return cst.EmptyLine(indent=False)


def comment_lines(comments: Iterable[str]) -> list[cst.EmptyLine]:
    """Comments on lines of their own."""
    return [cst.EmptyLine(comment=cst.Comment(one)) for one in comments]


def after(lines: Iterable[cst.EmptyLine], statement: Any) -> Any:
    """The statement with more lines above it."""
    return statement.with_changes(leading_lines=[*lines, *statement.leading_lines])


def with_comments_around(statement: Any, above: Sequence[str], beside: str | None = None) -> Any:
    """The statement with comments above it and one behind it, above as well where it has one."""
    if beside is not None and isinstance(statement, cst.SimpleStatementLine):
        trailing = statement.trailing_whitespace
        if trailing.comment is None:
            space = cst.SimpleWhitespace("  ")
            changed = trailing.with_changes(whitespace=space, comment=cst.Comment(beside))
            statement, beside = statement.with_changes(trailing_whitespace=changed), None
    more = (*above, *([] if beside is None else [beside]))
    return after(comment_lines(more), statement) if more else statement


def with_inner_comments(statements: Sequence[Any], old: Any) -> list[Any]:
    """Statements, the first below the comments inside the statement ``old`` that none of them has."""
    first, *more = statements
    return [after(comment_lines(left_out(old, *statements)), first), *more]


def without_comments(node: Any) -> Any:
    """A copy of what stays elsewhere, too: no comments, no lines above it."""
    if hasattr(node, "leading_lines"):
        node = node.with_changes(leading_lines=[])
    if not comments_in(node):
        return node
    from nnx_migrate.edit.copying import CommentRemover

    return node.visit(CommentRemover())


def on_one_line(node: Any) -> Any:
    """An expression without line ends and comments, for a place that has its own."""
    from nnx_migrate.edit.flattening import flatten

    return flatten(node)


def placed_at(line_: Any, more: Statements, above: Sequence[str] = ()) -> Any:
    """Statements in the place of a line with its comments; without any the line itself."""
    if not more:
        return after(comment_lines(above), line_) if above else line_
    inside = [one for part in line_.body for one in comments_in(part)]
    first, *others = more
    first = after([*line_.leading_lines, *comment_lines(inside)], first)
    *first_lines, last = [first, *others]
    return [*first_lines, last.with_changes(trailing_whitespace=line_.trailing_whitespace)]


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
            above = _join(above, _left(node, made), is_first=not found and opens)
            continue
        first, *more = made
        if above is not None:
            lines = _join(above, first.leading_lines, is_first=not found and opens)
            first, above = first.with_changes(leading_lines=lines), None
        found += [first, *more]
    return found, [one for one in above or [] if one.comment is not None]


def _left(node: Any, statements: Sequence[Any]) -> list[cst.EmptyLine]:
    """The lines that a statement which is gone leaves behind."""
    if statements is TAKEN:
        return [one for one in node.leading_lines if one.comment is None]
    inside = comments_in(node.with_changes(leading_lines=[]))
    more = statements.comments if isinstance(statements, _Leaving) else ()
    return [*node.leading_lines, *comment_lines([*inside, *more])]


def _join(
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
