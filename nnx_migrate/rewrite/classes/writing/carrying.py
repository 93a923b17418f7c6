"""Sizes that the loops of ``__init__`` carry from round to round, as statements."""

from __future__ import annotations

from collections.abc import Iterable

from nnx_migrate.edit.expressions import expression
from nnx_migrate.edit.statements import Statement, assign
from nnx_migrate.sizes.result import LoopCarry


def starts(loop_carries: Iterable[LoopCarry]) -> list[Statement]:
    """What they are in the first round, in front of the loop."""
    return [assign(one.name, expression(one.before)) for one in loop_carries]


def updates(loop_carries: Iterable[LoopCarry]) -> list[Statement]:
    """What they are in the next round, at the end of each."""
    return [assign(one.name, expression(one.after)) for one in loop_carries]
