"""Conditions of the call that the constructor is told about: whether ``c`` is given, ``train`` set.

``__init__`` builds what Linen's initial call would, under ``if with_c:`` for ``if c is not None:``.
The call keeps its own condition. What it then misses Linen would miss, too: calls that need a
submodule which the initial call did not make raise there and here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nnx_migrate.abstract.expression import GIVEN
from nnx_migrate.edit.calls import call, named
from nnx_migrate.edit.expressions import dotted_node, is_not_none
from nnx_migrate.edit.statements import Statement, run
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.naming import Name
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.flow import (
    Branch,
    Build,
    Step,
    builds,
    each_step,
)
from nnx_migrate.rewrite.classes.reading.taint import Replaced, Taint
from nnx_migrate.source.walking import walk

RULE = "compact"


@dataclass(frozen=True)
class CallConditions:
    """What still depends on the call although ``__init__`` knows what its first one has.

    Args:
      taint: what the call's parameters reach, its conditions taken for unknown.
      init_texts: nodes with another text in ``__init__``, without those conditions.
    """

    taint: Taint
    init_texts: Replaced

    def cause(self, step: Branch, *, leaves: bool) -> str | None:
        """The name at fault when a branch has to be taken for one that only the call decides.

        So it is when what it builds has no variables: Linen can build that in any call.

        Raises:
          Refused: a side of the branch mixes both kinds.
        """
        cause = self.taint.steps.get(id(step))
        inside = builds((*step.body, *step.orelse))
        if cause is None or leaves or all(item.free_of_variables for item in inside):
            return cause
        for side in (step.body, step.orelse):
            _check_side(side, cause)
        return None

    def check(self, node: ast.AST, call: ast.Call) -> None:
        """What a construction reads must be the same in every call.

        Raises:
          Refused: it follows a condition of the call.
        """
        names = free_names(node, self.init_texts) & self.taint.at.get(id(call), frozenset())
        if names:
            raise ClassRefused(
                call,
                f"it is built with {min(names)!r}, which may differ from call to call",
                f"make {min(names)!r} a field, or build from fields only",
                RULE,
            )


def _check_side(side: Sequence[Step], cause: str) -> None:
    """With something that has variables built for certain, a call cannot come by without them."""
    certain = any(isinstance(one, Build) and not one.item.free_of_variables for one in side)
    free = [item for item in builds(side) if item.free_of_variables]
    if free and not certain:
        raise ClassRefused(
            free[0].call,
            f"it is built only under a condition on {cause!r}, known in the call alone, together"
            " with what has variables",
            "build it before the condition",
            RULE,
        )


def renumbering(
    steps: Sequence[Step], taint: Taint, names: Mapping[int, Name], facts: Replaced
) -> frozenset[str]:
    """Names of facts that decide which number Linen gives to later submodules.

    Args:
      taint: what the call's parameters reach.
      facts: conditions of the call -> the constructor arguments that say what held.
    """
    counted = {one.counter_argument for one in names.values() if one.counter_argument is not None}
    found: set[str] = set()
    for branch in _branches(steps):
        kinds = {repr(item.site.class_name) for item in builds((branch,)) if item.site}
        if id(branch) in taint.steps and (kinds & counted or "None" in kinds):
            read = (facts.get(id(one), frozenset()) for one in walk(branch.test))
            found |= frozenset().union(*read)
    return frozenset(found)


def call_tests(steps: Sequence[Step], taint: Taint) -> Iterator[ast.expr]:
    """The conditions on the call that decide what is built."""
    yield from (one.test for one in _branches(steps) if id(one) in taint.steps and builds((one,)))


def _branches(steps: Sequence[Step]) -> Iterator[Branch]:
    return (one for one in each_step(steps) if isinstance(one, Branch))


def check_in_call(facts: Sequence[SizeArgument]) -> Statement:
    """The statement by which a call makes sure that the module was built for it."""
    tests = [
        named(
            one.name,
            is_not_none(dotted_node(str(one.argument)))
            if one.fact == GIVEN
            else call("bool", str(one.argument)),
        )
        for one in facts
    ]
    return run(call("nnm.built_for", "self", *tests))


def note_of(argument: SizeArgument) -> str:
    """What a person should know about the constructor argument for a fact."""
    says = "gets" if argument.fact == GIVEN else "gets a true"
    return (
        f"{argument.name} says whether Linen's initial call {says} {argument.argument!r}: that decides"
        " which submodules exist, and calls that need one which does not raise AttributeError"
    )


def tested_parameters(test: ast.expr, parameters: frozenset[str]) -> frozenset[str]:
    """Parameters that a condition asks for being None, or for being true."""
    match test:
        case ast.BoolOp(values=values):
            return frozenset(name for one in values for name in tested_parameters(one, parameters))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return tested_parameters(operand, parameters)
        case (
            ast.Name(id=name)
            | ast.Compare(
                left=ast.Name(id=name),
                ops=[ast.Is() | ast.IsNot()],
                comparators=[ast.Constant(value=None)],
            )
        ) if name in parameters:
            return frozenset({name})
        case _:
            return frozenset()
