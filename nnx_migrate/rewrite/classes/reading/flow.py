"""A method body as the sequence of what it builds, with the control structure around it.

The steps follow Python's evaluation order. A later pass (:mod:`slicing`) keeps the ones that
``__init__`` needs, another (:mod:`naming`) numbers the submodules as Linen does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.evaluation import COMPREHENSIONS, contains, operands
from nnx_migrate.source.bindings import bound_names, breaks, jumps, pairs_of
from nnx_migrate.source.changes import (
    WHOLE,
    changed_by_call,
    changed_names,
    open_change,
)
from nnx_migrate.source.leaving import returns
from nnx_migrate.source.walking import callee_of, each, names_in


@dataclass(frozen=True, eq=False)
class Build:
    """The construction of one item."""

    item: Item


@dataclass(frozen=True, eq=False)
class Bind:
    """A statement (or part of one), kept or dropped whole, that binds or mutates local names."""

    node: ast.AST
    defines: frozenset[str]  # rebound: the old value is gone
    mutates: frozenset[str] = frozenset()  # changed in place, or perhaps bound


@dataclass(frozen=True, eq=False)
class Branch:
    """``if``, conditional expression, ``and``/``or``."""

    node: ast.AST
    test: ast.expr
    body: tuple[Step, ...]
    orelse: tuple[Step, ...] = ()


@dataclass(frozen=True, eq=False)
class Loop:
    """``for`` or one generator of a comprehension (``conditions`` are its ``if`` clauses)."""

    node: ast.AST
    target: ast.expr
    iterable: ast.expr
    body: tuple[Step, ...]
    conditions: tuple[ast.expr, ...] = ()


@dataclass(frozen=True, eq=False)
class Exit:
    """``return``, ``break``, ``continue`` or ``raise``."""

    node: ast.stmt


@dataclass(frozen=True, eq=False)
class Leave:
    """A statement, kept or dropped whole, that may end the method or the round of a loop around it."""

    node: ast.stmt


@dataclass(frozen=True, eq=False)
class Unclear:
    """A construct around items that is not followed."""

    node: ast.AST
    reason: str
    items: tuple[Item, ...] = field(default=())


Step = Build | Bind | Branch | Loop | Exit | Leave | Unclear


def flow_of(body: Iterable[ast.stmt], items: Mapping[int, Item]) -> tuple[Step, ...]:
    """Steps of a method body."""
    return tuple(step for statement in body for step in _statement(statement, items))


def _statement(node: ast.stmt, items: Mapping[int, Item]) -> list[Step]:
    inside = contains(node, items)
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            branch = Branch(node, test, flow_of(body, items), flow_of(orelse, items))
            return [*_expression(test, items), branch]
        case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
            if orelse and breaks(body):
                reason = "something is built inside a loop with 'break' and 'else'"
                return [Unclear(node, reason)] if inside else _whole(node)
            loop = Loop(node, target, iterable, flow_of(body, items))
            return [*_expression(iterable, items), loop, *flow_of(orelse, items)]
        case ast.With(items=managers, body=body):
            if inside and not all(_is_scope(one.context_expr) for one in managers):
                return [Unclear(node, "something is built inside a 'with' block")]
            if any(one.optional_vars is not None for one in managers) or not inside:
                return _whole(node)
            return list(flow_of(body, items))
        case _ if isinstance(node, WHOLE):
            if inside:
                return [Unclear(node, f"something is built inside a '{_keyword(node)}' block")]
            return _whole(node)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            if not inside:
                return [_bind(node)]
            return [Unclear(node, f"something is built inside the local function {node.name}")]
        case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
            steps = [step for one in operands(node) for step in _expression(one, items)]
            return [*steps, Exit(node)]
        case ast.Assert() if not inside:
            return [_bind(one) for one in _parts(node)]
        case ast.Expr(value=value):
            steps = _expression(value, items)
            mutated = _mutated_receiver(value) | _visible_changes(node)
            return [*steps, Bind(node, frozenset(), mutated)] if mutated else steps
        case _:
            steps = [step for one in operands(node) for step in _expression(one, items)]
            binds = [_bind(one) for one in _parts(node)]
            return [*steps, *(one for one in binds if one.defines or one.mutates)]


def _whole(node: ast.stmt) -> list[Step]:
    may_leave = returns([node]) or jumps([node])
    return [_bind(node), Leave(node)] if may_leave else [_bind(node)]


def _parts(node: ast.stmt) -> Sequence[ast.stmt | ast.NamedExpr]:
    """``width, skip = self.width, x`` name by name, so that one does not hang on what the other reads."""
    match node:
        case ast.Assign(targets=[ast.Tuple() as target], value=ast.Tuple() as value):
            pairs = [*pairs_of(target, value)]
        case _:
            return [node]
    names = {one.id for one, _ in pairs if isinstance(one, ast.Name)}
    reads = names_in(value)
    # What a call does, it does in its statement.
    if len(names) != len(pairs) or names & reads or each(value, ast.Call):
        return [node]
    return [
        ast.copy_location(ast.NamedExpr(one, source), node)
        for one, source in pairs
        if isinstance(one, ast.Name)
    ]


def _bind(node: ast.stmt | ast.NamedExpr) -> Bind:
    defines = frozenset(bound_names(node))
    mutates = set(_visible_changes(node))
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            mutates |= {name for one in targets for name in _mutated_target(one)}
        case ast.AugAssign(target=ast.Name(id=name)):
            return Bind(node, frozenset(), frozenset({name}))
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            mutates |= set(_mutated_target(target))
        case _ if isinstance(node, ast.For | ast.With | WHOLE):
            return Bind(node, frozenset(), defines | changed_names(node))
    return Bind(node, defines, frozenset(mutates))


def _visible_changes(node: ast.AST) -> frozenset[str]:
    call = open_change(node)
    return frozenset(changed_by_call(call)) if call is not None else frozenset()


def _mutated_target(target: ast.expr) -> list[str]:
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [name for part in parts for name in _mutated_target(part)]
        case ast.Subscript(value=inner) | ast.Attribute(value=inner):
            while isinstance(inner, ast.Subscript | ast.Attribute):
                inner = inner.value
            return [inner.id] if isinstance(inner, ast.Name) else []
        case _:
            return []


def _mutated_receiver(value: ast.expr) -> frozenset[str]:
    """``layers`` in ``layers.append(...)``; ``self.sow(...)`` changes no field."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name != "self":
            return frozenset({name})
        case _:
            return frozenset()


def _is_scope(expression: ast.expr) -> bool:
    """Whether a context manager only names what runs inside it."""
    target = callee_of(expression)
    name = ast.unparse(target).rpartition(".")[2]
    return name in {"named_scope", "TraceAnnotation", "StepTraceAnnotation"}


def _keyword(node: ast.AST) -> str:
    return type(node).__name__.lower()


def _expression(node: ast.AST, items: Mapping[int, Item]) -> list[Step]:
    if not contains(node, items):
        return []
    match node:
        case ast.IfExp(test=test, body=body, orelse=orelse):
            branches = tuple(_expression(body, items)), tuple(_expression(orelse, items))
            steps = _expression(test, items)
            return [*steps, Branch(node, test, *branches)] if any(branches) else steps
        case ast.BoolOp(op=op, values=[first, *rest]):
            later = tuple(step for value in rest for step in _expression(value, items))
            steps = _expression(first, items)
            if not later:
                return steps
            if len(rest) > 1:
                return [*steps, Unclear(node, "something is built inside a chain of and/or")]
            both = (later, ()) if isinstance(op, ast.And) else ((), later)
            return [*steps, Branch(node, first, *both)]
        case ast.Lambda():
            return [Unclear(node, "something is built inside a lambda")]
        case _ if isinstance(node, COMPREHENSIONS):
            return _comprehension(node, items)
    steps = [step for one in operands(node) for step in _expression(one, items)]
    if id(node) in items:
        steps.append(Build(items[id(node)]))
    return steps


def _comprehension(node: ast.AST, items: Mapping[int, Item]) -> list[Step]:
    generators = node.generators  # type: ignore[attr-defined]
    results = [one for one in operands(node) if not isinstance(one, ast.comprehension)]
    body = tuple(step for one in results for step in _expression(one, items))
    if any(contains(one, items) for gen in generators for one in gen.ifs):
        return [Unclear(node, "something is built in the condition of a comprehension")]
    outer: tuple[Step, ...] = body
    for index, gen in reversed(list(enumerate(generators))):
        owner = node if index == 0 else gen
        loop = Loop(owner, gen.target, gen.iter, outer, tuple(gen.ifs))
        outer = (*_expression(gen.iter, items), loop)
    return list(outer)


def below(step: Step) -> tuple[Step, ...]:
    """The steps that a branch or loop holds, of a branch both sides'."""
    match step:
        case Branch(body=body, orelse=orelse):
            return (*body, *orelse)
        case Loop(body=body):
            return body
    return ()


def each_step(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps in order, each before those that it holds."""
    for step in steps:
        yield step
        yield from each_step(below(step))


def builds(steps: Iterable[Step]) -> list[Item]:
    """Every item built in ``steps``, in order."""
    return [one.item for one in each_step(steps) if isinstance(one, Build)]


def binds(steps: Iterable[Step]) -> Iterator[Bind]:
    """Every binding in ``steps``, in order."""
    return (one for one in each_step(steps) if isinstance(one, Bind))
