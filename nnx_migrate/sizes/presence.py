"""What a test says about which parameters of the call are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Argument
from nnx_migrate.sizes.frames import Frame

ALWAYS = ex.literal(True)


def presence(test: ast.expr, frame: Frame, *, holds: bool) -> dict[str, bool]:
    """Parameters of the root's call that are given (or None) wherever the test has this outcome."""
    return dict(_presence(test, frame, holds, frame.tests))


@dataclass(frozen=True)
class Side:
    """One branch of a test: the condition under which it runs, and which parameters are given there.

    The condition is None where the arguments of the call decide in a way that nobody knows, and `ALWAYS`
    where a random number alone decides.
    """

    condition: Expr | None
    presence: Mapping[str, bool]


def sides(truth: Expr | None, test: ast.expr, frame: Frame) -> tuple[Side, Side]:
    """The branches of a test where it holds and where it does not; ``truth`` is what is known of it."""
    present, left_out = (presence(test, frame, holds=one) for one in (True, False))
    condition = truth
    if condition is None and len(present) == 1 and present.keys() == left_out.keys():
        ((path, is_given),) = present.items()  # the test asks for nothing else
        fact = ex.call_fact(path, ex.GIVEN)
        condition = fact if is_given else ex.negation(fact)
    negation = ex.negation(condition) if condition is not None else None
    return Side(condition, present), Side(negation, left_out)


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
