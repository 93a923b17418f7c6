"""Loops that hand a size from round to round, and rounds that end early after a layer has changed it.

``__init__`` notes the size at the end of a round: ``continue`` and ``break`` leave it as it was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.reading.flow import Branch, Build, Exit, Loop, Step, builds
from nnx_migrate.sizes.result import LoopCarry


def check_early_rounds(steps: Sequence[Step], carried: Mapping[int, tuple[LoopCarry, ...]]) -> None:
    """Refuse such a loop, but for one that ends early and behind which nothing is built.

    Raises:
      Refused: one does.
    """
    behind = max((item.call.lineno for item in builds(steps)), default=0)
    for loop in _loops(steps):
        if not carried.get(id(loop.node)):
            continue
        is_last = behind <= getattr(loop.node, "end_lineno", 0)
        for jump, has_built in _jumps(loop.body, has_built=False):
            if has_built and not (is_last and isinstance(jump, ast.Break)):
                raise Refused(
                    jump,
                    "a round ends early here, after layers that the size of the next ones follows",
                    "end no round early, or give the size as a field",
                    "compact",
                )


def _loops(steps: Sequence[Step]) -> Iterator[Loop]:
    for step in steps:
        match step:
            case Branch(body=body, orelse=orelse):
                yield from _loops((*body, *orelse))
            case Loop(body=body):
                yield step
                yield from _loops(body)


def _jumps(steps: Sequence[Step], *, has_built: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Where a round may end early, and whether it has built something by then."""
    for step in steps:
        match step:
            case Exit(node=ast.Continue() | ast.Break() as node):
                yield node, has_built
            case Branch(body=body, orelse=orelse):
                yield from _jumps(body, has_built=has_built)
                yield from _jumps(orelse, has_built=has_built)
                has_built |= any(True for _ in builds((*body, *orelse)))
            case Loop(body=body):
                has_built |= any(True for _ in builds(body))
            case Build():
                has_built = True
