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


def taint_of(steps: Sequence[Step], parameters: Sequence[str], replaced: Replaced) -> Taint:
    """Follow what the call's parameters reach.

    Args:
      parameters: names that are only known in the call.
      replaced: nodes that ``__init__`` knows another text for, with the names that text reads.
    """
    found = Taint()
    _run(steps, set(parameters), replaced, found)
    return found


def tainted_name(
    node: ast.AST, tainted: set[str] | frozenset[str], replaced: Replaced
) -> str | None:
    """A name through which ``node`` depends on the call, if any."""
    return min(free_names(node, replaced) & tainted, default=None)


def _run(steps: Sequence[Step], tainted: set[str], replaced: Replaced, found: Taint) -> None:
    for step in steps:
        match step:
            case Build(item=item):
                found.at[id(item.call)] = frozenset(tainted)
            case Bind(node=node, defines=defines, mutates=mutates):
                value = value_of(node)
                found.before[id(step)] = frozenset(tainted)
                if tainted_name(value, tainted, replaced):
                    tainted |= (defines | mutates) - {"self"}  # self.sow(...) leaves the fields
                else:
                    tainted -= defines
            case Branch(test=test, body=body, orelse=orelse):
                found.before[id(step)] = frozenset(tainted)
                cause = tainted_name(test, tainted, replaced)
                first, second = set(tainted), set(tainted)
                _run(body, first, replaced, found)
                _run(orelse, second, replaced, found)
                if cause:
                    found.steps[id(step)] = cause
                    assigned = _assigned(body) | _assigned(orelse)
                    first |= assigned
                tainted |= first | second
                tainted &= first | second
            case Loop(target=target, iterable=iterable, body=body, conditions=conditions):
                found.before[id(step)] = frozenset(tainted)
                cause = tainted_name(iterable, tainted, replaced)
                if cause:
                    tainted |= set(target_names(target))
                else:
                    tainted -= set(target_names(target))
                for _ in range(3):  # what one round taints reaches the next one
                    inside = set(tainted)
                    _run(body, inside, replaced, found)
                    tainted |= inside
                for one in conditions:
                    cause = cause or tainted_name(one, tainted, replaced)
                if cause:
                    found.steps[id(step)] = cause
                    tainted |= _assigned(body)


def value_of(node: ast.AST) -> ast.AST:
    """What a statement binds, or the statement itself."""
    match node:
        case ast.Assign(value=value) | ast.NamedExpr(value=value):
            return value
        case ast.AnnAssign(value=ast.expr() as value):
            return value
        case _:
            return node


def _assigned(steps: Sequence[Step]) -> set[str]:
    names = (name for one in binds(steps) for name in one.defines | one.mutates)
    return {*names} - {"self"}
