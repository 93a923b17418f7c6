"""What a test says about which parameters of the call are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Argument
from nnx_migrate.sizes.frames import Frame


def presence(test: ast.expr, frame: Frame, *, holds: bool) -> dict[str, bool]:
    """Parameters of the root's call that are given (or None) wherever the test has this outcome."""
    return dict(_presence(test, frame, holds, frame.tests))


def conditions_of(
    test: bool | Expr | None, given: dict[str, bool], left_out: dict[str, bool]
) -> tuple[Expr | None, Expr | None]:
    """Under which condition each branch of an ``if`` runs; None where the arguments decide somehow.

    Args:
      test: what is known of its truth.
      given: what the first branch knows to be given; ``left_out``, what the other one does.
    """
    if isinstance(test, Expr):
        return test, ex.negation(test)
    if len(given) == 1 and given.keys() == left_out.keys():  # the test asks for nothing else
        ((path, is_given),) = given.items()
        fact = ex.call_fact(path, ex.GIVEN)
        return (fact, ex.negation(fact)) if is_given else (ex.negation(fact), fact)
    return None, None


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
