"""``match`` over values, as the chain of tests that it stands for."""

from __future__ import annotations

import ast
from functools import lru_cache


@lru_cache(maxsize=1 << 10)
def branches_of(statement: ast.Match) -> ast.If | None:
    """The ``if`` chain with the same bodies; None for patterns that bind names or take apart.

    The nodes of one statement are made once: the interpreter knows nodes by identity.
    """
    if not _is_plain(statement.subject):
        return None
    rest: list[ast.stmt] = []
    for case in reversed(statement.cases):
        test = _test(statement.subject, case.pattern)
        if test is None:
            return None
        if case.guard is not None:
            test = ast.BoolOp(ast.And(), [test, case.guard])
        rest = [ast.copy_location(ast.If(test, case.body, rest), statement)]
    first = rest[0]
    assert isinstance(first, ast.If)
    return ast.fix_missing_locations(first)


def _is_plain(subject: ast.expr) -> bool:
    """Whether evaluating the subject once for every test changes nothing."""
    match subject:
        case ast.Name():
            return True
        case ast.Attribute(value=value):
            return _is_plain(value)
        case _:
            return False


def _test(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    match pattern:
        case ast.MatchValue(value=value):
            return ast.Compare(subject, [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            return ast.Compare(subject, [ast.Is()], [ast.Constant(value)])
        case ast.MatchOr(patterns=patterns):
            parts = [_test(subject, one) for one in patterns]
            known = [one for one in parts if one is not None]
            return ast.BoolOp(ast.Or(), known) if len(known) == len(parts) else None
        case ast.MatchAs(pattern=None, name=None):
            return ast.Constant(True)
        case _:
            return None
