"""Refuses submodules that answers decide on which later calls get otherwise than ``init``.

::

    x = nn.Dropout(0.1 if self.is_initializing() else 0.5)(x)  # another one in later calls
    if self.is_initializing():
        return x
    x = nn.Dropout(0.5)(x)  # only in later calls

A layer with variables may hang on an answer: where ``init`` makes none for it, Linen has none later.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from nnx_migrate.constructs import layer_of
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.flow import (
    Branch,
    Exit,
    Leave,
    Loop,
    Step,
    below,
    builds,
    each_step,
)
from nnx_migrate.rewrite.classes.reading.taint import Replaced, Taint, tainted_name
from nnx_migrate.rewrite.classes.writing.construct import operands_of

RULE = "compact"
_ANEW = "Linen builds it anew in each call, and __init__ once"


def refuse_answers(
    steps: Sequence[Step],
    taint: Taint,
    answers: Taint,
    init_texts: Replaced,
    moved_nodes: Collection[int],
) -> None:
    """Refuse submodules that are built with answers, or only where an answer says so.

    Args:
      taint: what the call's parameters reach.
      answers: what they and answers reach, of the nodes in ``init_texts``.
      moved_nodes: values that no constructor gets.

    Raises:
      Refused: one is.
    """
    for item in builds(steps):
        key = id(item.call)
        at = answers.at.get(key, frozenset()) - taint.at.get(key, frozenset())
        read = operands_of(item, moved_nodes) if _is_submodule(item) else ()
        if any(tainted_name(one, at, init_texts) for one in read):
            raise _refusal(item, "it is built with what only a call can ask")
    asking_steps = answers.steps.keys() - taint.steps.keys()
    for item, is_alone in _dependent_items(steps, asking_steps) if asking_steps else ():
        if _is_submodule(item) and not (is_alone and _has_variables(item)):
            raise _refusal(item, "only a call can ask whether it is built")


def _is_submodule(item: Item) -> bool:
    """Variables get their first values in ``init`` alone."""
    return item.site is not None


def _has_variables(item: Item) -> bool:
    """Whether it surely is a layer with variables, under a name that no number of others decides."""
    layer = layer_of(item.site.symbol) if item.site is not None else None
    return layer is not None and not layer.is_stateless and item.name is not None


def _dependent_items(
    steps: Sequence[Step], asking_steps: Collection[int]
) -> Iterator[tuple[Item, bool]]:
    """What is built below steps that ask, or after one that may end the method or a round.

    With each, whether it is that or nothing: not one of two, nor one of several rounds.
    """
    may_end = False
    for step in steps:
        if id(step) in asking_steps or may_end:
            is_alone = not isinstance(step, Loop) and not (
                isinstance(step, Branch) and builds(step.body) and builds(step.orelse)
            )
            yield from ((item, is_alone) for item in builds((step,)))
        else:
            yield from _dependent_items(below(step), asking_steps)
        may_end = may_end or _may_end(step, asking_steps)


def _may_end(step: Step, asking_steps: Collection[int]) -> bool:
    """Whether a step that asks, it or one in it, may end the method, or a round of a loop."""
    return any(
        id(one) in asking_steps and any(map(_ends, each_step((one,)))) for one in each_step((step,))
    )


def _ends(step: Step) -> bool:
    is_exit = isinstance(step, Exit) and not isinstance(step.node, ast.Raise)
    return is_exit or isinstance(step, Leave)


def _refusal(item: Item, reason: str) -> ClassRefused:
    recipe = "give it where the submodule is called, or take a field"
    return ClassRefused(item.call, f"{reason}: {_ANEW}", recipe, RULE)
