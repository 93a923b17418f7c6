"""Which local names of a compact method are only known in the call."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.flow import Bind, Branch, Build, Loop, Step, binds
from nnx_migrate.source.bindings import target_names
from nnx_migrate.source.walking import has_starred

Replaced = Mapping[int, frozenset[str]]


@dataclass
class Taint:
    """Result of :func:`taint_of`.

    Attributes:
      steps: branches and loops (by id of the step) that depend on the call, with the name at fault.
      at: tainted names at each construction, by id of its call.
      before: tainted names before each other step, by its id.
      counted: expressions that loops run over (by id) whose items only the call knows, not their number.
    """

    steps: dict[int, str] = field(default_factory=dict)
    at: dict[int, frozenset[str]] = field(default_factory=dict)
    before: dict[int, frozenset[str]] = field(default_factory=dict)
    counted: set[int] = field(default_factory=set)


def taint_of(
    steps: Sequence[Step],
    parameters: Sequence[str],
    init_texts: Replaced,
    lengths: Collection[int] = (),
) -> Taint:
    """Follow what the call's parameters reach.

    Args:
      parameters: names that are only known in the call.
      init_texts: nodes that ``__init__`` knows another text for, with the names that text reads.
      lengths: expressions that loops run over, by id, of which ``__init__`` knows the number of items.
    """
    found = Taint()
    _run(steps, set(parameters), _Known(init_texts, lengths), found)
    return found


@dataclass(frozen=True)
class _Known:
    """What ``__init__`` knows without the call."""

    texts: Replaced
    lengths: Collection[int]


def tainted_name(
    node: ast.AST, tainted_names: set[str] | frozenset[str], init_texts: Replaced
) -> str | None:
    """A name through which ``node`` depends on the call, if any."""
    return min(free_names(node, init_texts) & tainted_names, default=None)


def _run(steps: Sequence[Step], tainted_names: set[str], known: _Known, taint: Taint) -> None:
    init_texts = known.texts
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
                _run(body, first, known, taint)
                _run(orelse, second, known, taint)
                if cause:
                    taint.steps[id(step)] = cause
                    assigned = _targets(body) | _targets(orelse)
                    first |= assigned
                tainted_names |= first | second
                tainted_names &= first | second
            case Loop(target=target, iterable=iterable, body=body, conditions=conditions):
                taint.before[id(step)] = frozenset(tainted_names)
                cause, items = _items(target, iterable, tainted_names, known, taint)
                tainted_names -= set(target_names(target))
                tainted_names |= items
                for _ in range(3):  # what one round taints reaches the next one
                    inside = set(tainted_names)
                    _run(body, inside, known, taint)
                    tainted_names |= inside
                for one in conditions:
                    cause = cause or tainted_name(one, tainted_names, init_texts)
                if cause:
                    taint.steps[id(step)] = cause
                    tainted_names |= _targets(body)


def _items(
    target: ast.expr, iterable: ast.expr, tainted_names: set[str], known: _Known, taint: Taint
) -> tuple[str | None, set[str]]:
    """The name at fault where only the call knows how many rounds a loop has, and the tainted targets.

    Of ``for i, out in enumerate(outs)`` that is ``out`` alone, where the length of ``outs`` is known.
    """
    every = set(target_names(target))
    parts: list[tuple[ast.expr, ast.expr]] = []
    match iterable, target:
        case ast.Call(func=ast.Name(id="enumerate"), args=[over, *_]), ast.Tuple(elts=[_, item]):
            parts = [(item, over)]
        case (
            ast.Call(func=ast.Name(id="zip"), args=many, keywords=[]),
            ast.Tuple(elts=targets),
        ) if len(many) == len(targets) and not has_starred([*many, *targets]):
            parts = [*zip(targets, many, strict=True)]
        case _:
            cause = tainted_name(iterable, tainted_names, known.texts)
            if cause is None:
                return None, set()
            if id(iterable) not in known.lengths:
                return cause, every
            taint.counted.add(id(iterable))
            return None, every
    found = [_items(one, over, tainted_names, known, taint) for one, over in parts]
    cause = next((why for why, _ in found if why), None)
    return cause, every if cause else set[str]().union(*(names for _, names in found))


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
