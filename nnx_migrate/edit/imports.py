"""Import statements as LibCST nodes: new ones, other modules in old ones, names moved out of one.

Comments inside parentheses go with the name that they stand beside or above.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

from nnx_migrate.edit.data import Line
from nnx_migrate.edit.expressions import dotted_node
from nnx_migrate.edit.syntax import cst

_Gap: TypeAlias = "cst.BaseParenthesizableWhitespace"


def import_module(name: str, alias: str | None = None) -> cst.Import:
    """``import name`` or ``import name as alias``."""
    return cst.Import([cst.ImportAlias(dotted_node(name), asname=_as(alias))])


def import_from(module: str, names: Sequence[tuple[str, str | None]]) -> cst.ImportFrom:
    """``from module import name as alias, ...``."""
    aliases = [cst.ImportAlias(cst.Name(name), asname=_as(alias)) for name, alias in names]
    return cst.ImportFrom(dotted_node(module), aliases)


def _as(alias: str | None) -> cst.AsName | None:
    return None if alias is None else cst.AsName(cst.Name(alias))


def with_module(statement: cst.ImportFrom, module: str) -> cst.ImportFrom:
    """The statement importing the same names from another module."""
    return statement.with_changes(module=dotted_node(module))


def with_names(statement: cst.Import, names: Sequence[str]) -> cst.Import:
    """``import a as x, b`` with other modules, aliases as they are."""
    changed = [
        alias.with_changes(name=dotted_node(name))
        for alias, name in zip(statement.names, names, strict=True)
    ]
    return statement.with_changes(names=changed)


def move_names(statement: cst.ImportFrom, positions: Collection[int], module: str) -> list[Line]:
    """Let the names at some ``positions`` come from another module, in a line of their own.

    At least one name must stay.
    """
    aliases = list(statement.names) if not isinstance(statement.names, cst.ImportStar) else []
    gaps = _gaps(statement, aliases)
    moving, above, beside = [], [], []
    remaining: list[cst.ImportAlias] = []
    between = [gaps[0]]  # white space in front of each kept name, and behind the last
    for position, alias in enumerate(aliases):
        before, after = gaps[position], gaps[position + 1]
        if position not in positions:
            remaining.append(alias)
            between.append(after)
            continue
        moving.append(alias)
        above += _own_lines(between[-1]) if before is between[-1] else []
        beside += _beside(after)
        between[-1] = _join(between[-1], after)
    rest = _rebuilt(statement, remaining, between)
    names = [
        one.with_changes(comma=cst.MaybeSentinel.DEFAULT)
        if one is moving[-1]
        else one.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        for one in moving
    ]
    new = cst.ImportFrom(dotted_node(module), names)
    return [Line(rest), Line(new, (*above, *beside[1:]), beside[0] if beside else None)]


def without_names(statement: Any, positions: Collection[int]) -> tuple[Any, list[str]]:
    """An import statement with some names left out, and their comments; one name must stay.

    Comments on lines of their own stay where they were.
    """
    names = list(statement.names)
    remaining = [one for i, one in enumerate(names) if i not in positions]
    ends = len(names) - 1 not in positions
    lost_comments = [
        comment
        for i in positions
        for comment in _beside(_behind(names[i], statement if i == len(names) - 1 else None))
    ]
    if ends:
        return statement.with_changes(names=remaining), lost_comments
    last, comma = remaining[-1], names[-1].comma
    gap, end = _behind(last, None), _behind(names[-1], statement)
    if isinstance(gap, cst.ParenthesizedWhitespace):
        comments = [*_beside(gap), *_own_lines(gap)]
        line = end.last_line if isinstance(end, cst.ParenthesizedWhitespace) else _NONE()
        gap = gap.with_changes(last_line=line) if comments else _bare_end(end)
        remaining[-1] = last.with_changes(comma=last.comma.with_changes(whitespace_after=gap))
        if getattr(statement, "rpar", None) is not None:
            rpar = statement.rpar.with_changes(whitespace_before=_NONE())
            statement = statement.with_changes(rpar=rpar)
    else:
        remaining[-1] = last.with_changes(comma=comma)
    return statement.with_changes(names=remaining), lost_comments


def _NONE() -> cst.SimpleWhitespace:
    return cst.SimpleWhitespace("")


def _bare_end(gap: _Gap) -> _Gap:
    return _bare(gap) if isinstance(gap, cst.ParenthesizedWhitespace) else gap


def _behind(alias: cst.ImportAlias, last_of: Any) -> _Gap:
    """The white space behind a name and its comma, or before the closing parenthesis."""
    if isinstance(alias.comma, cst.Comma):
        return alias.comma.whitespace_after
    rpar = getattr(last_of, "rpar", None)
    return _NONE() if rpar is None else rpar.whitespace_before


def _gaps(statement: cst.ImportFrom, aliases: Sequence[cst.ImportAlias]) -> list[_Gap]:
    """White space before the first name, between the names and behind the last."""
    none = cst.SimpleWhitespace("")
    gaps: list[_Gap] = [statement.lpar.whitespace_after if statement.lpar else none]
    for alias in aliases:
        comma = alias.comma
        gaps.append(comma.whitespace_after if isinstance(comma, cst.Comma) else none)
    last = aliases[-1].comma
    if not isinstance(last, cst.Comma) and statement.rpar:
        gaps[-1] = statement.rpar.whitespace_before
    return gaps


def _rebuilt(
    statement: cst.ImportFrom, aliases: list[cst.ImportAlias], gaps: list[_Gap]
) -> cst.ImportFrom:
    """The statement with these names and the white space around them."""
    ends = statement.names[-1].comma if not isinstance(statement.names, cst.ImportStar) else None
    trailing = isinstance(ends, cst.Comma)
    names: list[cst.ImportAlias] = []
    for position, alias in enumerate(aliases):
        gap = gaps[position + 1]
        if position < len(aliases) - 1 or trailing:
            old = alias.comma if isinstance(alias.comma, cst.Comma) else cst.Comma()
            gap = gap if isinstance(gap, cst.ParenthesizedWhitespace) or trailing else _space(gap)
            names.append(alias.with_changes(comma=old.with_changes(whitespace_after=gap)))
        else:
            names.append(alias.with_changes(comma=cst.MaybeSentinel.DEFAULT))
    changed = statement.with_changes(names=names)
    if statement.lpar is not None:
        lpar = statement.lpar.with_changes(whitespace_after=gaps[0])
        changed = changed.with_changes(lpar=lpar)
    if statement.rpar is not None and not trailing:
        rpar = statement.rpar.with_changes(whitespace_before=gaps[-1])
        changed = changed.with_changes(rpar=rpar)
    return changed


def _space(gap: _Gap) -> _Gap:
    """At least a space behind a comma that has a name behind it."""
    empty = isinstance(gap, cst.SimpleWhitespace) and not gap.value
    return cst.SimpleWhitespace(" ") if empty else gap


def _join(before: _Gap, after: _Gap) -> _Gap:
    """White space where a name is gone: what stood beside the name before it, then what follows."""
    if not isinstance(before, cst.ParenthesizedWhitespace):
        return before if isinstance(after, cst.SimpleWhitespace) else _bare(after)
    if not isinstance(after, cst.ParenthesizedWhitespace):
        return before.with_changes(empty_lines=[])
    return before.with_changes(
        empty_lines=after.empty_lines, indent=after.indent, last_line=after.last_line
    )


def _bare(gap: _Gap) -> _Gap:
    """The line end of a name that is gone, without its comment."""
    assert isinstance(gap, cst.ParenthesizedWhitespace)
    line = gap.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return gap.with_changes(first_line=line)


def _own_lines(gap: _Gap) -> list[str]:
    lines = gap.empty_lines if isinstance(gap, cst.ParenthesizedWhitespace) else ()
    return [one.comment.value for one in lines if one.comment is not None]


def _beside(gap: _Gap) -> list[str]:
    if isinstance(gap, cst.ParenthesizedWhitespace) and gap.first_line.comment is not None:
        return [gap.first_line.comment.value]
    return []
