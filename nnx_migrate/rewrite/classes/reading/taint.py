"""Which local names of a compact method are only known in the call."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.flow import Bind, Branch, Build, Loop, Step, binds
from nnx_migrate.source.bindings import target_names

Replaced = Mapping[int, frozenset[str]]


@dataclass
class Taint:
    """Result of :func:`taint_of`.

    Attributes:
      steps: branches and loops (by id of the step) that depend on the call, with the name at fault.
      at: tainted names at each construction, by id of its call.
      before: tainted names before each other step, by its id.
    """

    steps: dict[int, str] = field(default_factory=dict)
    at: dict[int, frozenset[str]] = field(default_factory=dict)
    before: dict[int, frozenset[str]] = field(default_factory=dict)


def taint_of(steps: Sequence[Step], parameters: Sequence[str], init_texts: Replaced) -> Taint:
    """Follow what the call's parameters reach.

    Args:
      parameters: names that are only known in the call.
      init_texts: nodes that ``__init__`` knows another text for, with the names that text reads.
    """
    found = Taint()
    _run(steps, set(parameters), init_texts, found)
    return found


def tainted_name(
    node: ast.AST, tainted_names: set[str] | frozenset[str], init_texts: Replaced
) -> str | None:
    """A name through which ``node`` depends on the call, if any."""
    return min(free_names(node, init_texts) & tainted_names, default=None)


def _run(
    steps: Sequence[Step], tainted_names: set[str], init_texts: Replaced, taint: Taint
) -> None:
    for step in steps:
        match step:
            case Build(item=item):
                taint.at[id(item.call)] = frozenset(tainted_names)
            case Bind(node=node, defines=defines, mutates=mutates):
                value = value_of(node)
                taint.before[id(step)] = frozenset(tainted_names)
                if tainted_name(value, tainted_names, init_texts):
                    tainted_names |= (defines | mutates) - {
                        "self"
                    }  # self.sow(...) leaves the fields
                else:
                    tainted_names -= defines
            case Branch(test=test, body=body, orelse=orelse):
                taint.before[id(step)] = frozenset(tainted_names)
                cause = tainted_name(test, tainted_names, init_texts)
                first, second = set(tainted_names), set(tainted_names)
                _run(body, first, init_texts, taint)
                _run(orelse, second, init_texts, taint)
                if cause:
                    taint.steps[id(step)] = cause
                    assigned = _targets(body) | _targets(orelse)
                    first |= assigned
                tainted_names |= first | second
                tainted_names &= first | second
            case Loop(target=target, iterable=iterable, body=body, conditions=conditions):
                taint.before[id(step)] = frozenset(tainted_names)
                cause = tainted_name(iterable, tainted_names, init_texts)
                if cause:
                    tainted_names |= set(target_names(target))
                else:
                    tainted_names -= set(target_names(target))
                for _ in range(3):  # what one round taints reaches the next one
                    inside = set(tainted_names)
                    _run(body, inside, init_texts, taint)
                    tainted_names |= inside
                for one in conditions:
                    cause = cause or tainted_name(one, tainted_names, init_texts)
                if cause:
                    taint.steps[id(step)] = cause
                    tainted_names |= _targets(body)


def value_of(node: ast.AST) -> ast.AST:
    """What a statement binds, or the statement itself."""
    match node:
        case ast.Assign(value=value) | ast.NamedExpr(value=value):
            return value
        case ast.AnnAssign(value=ast.expr() as value):
            return value
        case _:
            return node


def _targets(steps: Sequence[Step]) -> set[str]:
    names = (name for one in binds(steps) for name in one.defines | one.mutates)
    return {*names} - {"self"}
