"""What a test says about which parameters of the call are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.abstract.values import Argument
from nnx_migrate.sizes.frames import Frame


def presence(test: ast.expr, frame: Frame, *, holds: bool) -> dict[str, bool]:
    """Parameters of the root's call that are given (or None) wherever the test has this outcome."""
    return dict(_presence(test, frame, holds, frame.tests))


def _presence(
    test: ast.expr, frame: Frame, holds: bool, tests: dict[str, ast.expr]
) -> Iterator[tuple[str, bool]]:
    match test:
        case ast.Name(id=name) if name in tests:
            yield from _presence(tests[name], frame, holds, {})
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is holds:
            for one in values:
                yield from _presence(one, frame, holds, tests)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _presence(operand, frame, not holds, tests)
        case ast.Compare(
            left=ast.Name(id=name),
            ops=[ast.Is() | ast.IsNot() as op],
            comparators=[ast.Constant(value=None)],
        ):
            value = frame.env.get(name)
            if isinstance(value, Argument) and value.path.isidentifier():
                yield value.path, isinstance(op, ast.IsNot) is holds
