"""Submodules that a compact method builds in plain sight and calls under one condition further down.

``short = nn.Conv(8, (1, 1))`` makes no parameters; ``short(x) if x.shape[-1] != 8 else x`` does, where the
condition holds. So ``__init__`` builds it under that condition. It has its number all the same. So it does
where another one takes its name under a condition: ``head = Head()``, ``if deep: head = DeepHead()``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.flow import Branch, Build, Step
from nnx_migrate.source.bindings import target_names
from nnx_migrate.source.names import root_name
from nnx_migrate.source.walking import each, walk

_PLAIN = (
    *(ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Tuple, ast.Slice, ast.Load),
    *(ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp),
    *(ast.cmpop, ast.boolop, ast.operator, ast.unaryop),
)


@dataclass(frozen=True)
class Guard:
    """The condition around all calls of a submodule.

    Attributes:
      node: the statement or expression that asks it.
      inside: what runs where the submodule is called.
      holds: whether that is where the test is true.
    """

    node: ast.If | ast.IfExp
    inside: Sequence[ast.stmt]
    holds: bool


def guard_of(
    method: ast.FunctionDef, built: ast.Call, name: str, changed: AbstractSet[str]
) -> Guard | None:
    """The condition under which a method calls what it bound to a name, if it is the same at both places.

    It stands at the top of the method, as does what builds; nothing in between leaves the method, or
    changes what the condition reads. It decides about the calls, or binds the name to something else.

    Args:
      changed: names that something changes where no statement says it.
    """
    start = next((at for at, one in enumerate(method.body) if _binds(one, built, name)), None)
    reads = [one for one in each(method, ast.Name) if one.id == name]
    calls = {id(one.func) for one in each(method, ast.Call)}
    loads = {id(one) for one in reads if isinstance(one.ctx, ast.Load)}
    others = {id(one) for one in reads} - loads
    if start is None or not loads <= calls:
        return None
    for at, statement in enumerate(method.body[start + 1 :], start + 1):
        inside = {id(one) for one in walk(statement)}
        if not inside & (loads | others):
            continue
        if inside & loads:
            ways: Iterator[Guard] = (one for one in _guards(statement) if loads <= _within(one))
        else:
            ways = _bound_anew(statement, name, method.body[at + 1 :])
        found = next(ways, None) if len(others - inside) == 1 else None
        between = method.body[start:at]
        return found if found is not None and _is_kept(found.node.test, between, changed) else None
    return None


def _bound_anew(statement: ast.stmt, name: str, rest: Sequence[ast.stmt]) -> Iterator[Guard]:
    """``if deep: layer = Deep()``: where it does not hold, ``layer`` is still what it was."""
    match statement:
        case ast.If(body=body, orelse=[]):
            bound = [target_names(one) for one in body if isinstance(one, ast.Assign)]
            if any(names == (name,) for names in map(tuple, bound)):
                yield Guard(statement, rest, holds=False)


def guarded(steps: Sequence[Step], guards: Mapping[int, Guard]) -> tuple[Step, ...]:
    """The steps with what is called under a condition built under it."""
    return tuple(
        _under(one, guards.get(id(one.item.call))) if isinstance(one, Build) else one
        for one in steps
    )


def _under(step: Build, guard: Guard | None) -> Step:
    if guard is None:
        return step
    ways = ((step,), ()) if guard.holds else ((), (step,))
    return Branch(guard.node, guard.node.test, *ways)


def _binds(statement: ast.stmt, built: ast.Call, name: str) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=bound)], value=value):
            return bound == name and value is built
    return False


def _guards(statement: ast.stmt) -> Iterator[Guard]:
    """The conditions that a statement surely asks, with both that they decide about."""
    match statement:
        case ast.If(body=body, orelse=orelse):
            yield from (Guard(statement, body, True), Guard(statement, orelse, False))
        case (
            ast.Assign(value=value) | ast.Return(value=ast.expr() as value) | ast.Expr(value=value)
        ):
            yield from _asked(value)
        case ast.AugAssign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            yield from _asked(value)


def _asked(value: ast.expr) -> Iterator[Guard]:
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            yield from (
                Guard(value, [ast.Expr(body)], True),
                Guard(value, [ast.Expr(orelse)], False),
            )
        case ast.BinOp() | ast.Call() | ast.Tuple() | ast.List() | ast.keyword():
            for one in ast.iter_child_nodes(value):
                yield from _asked(one)  # type: ignore[arg-type]


def _within(guard: Guard) -> set[int]:
    return {id(one) for part in guard.inside for one in walk(part)}


def _is_kept(test: ast.expr, between: Sequence[ast.stmt], changed: AbstractSet[str]) -> bool:
    """Whether a condition is the same before these statements as behind them."""
    names = free_names(test) - {"self"}
    nodes = [node for one in between for node in walk(one)]
    if names & changed or not all(isinstance(one, _PLAIN) for one in walk(test)):
        return False
    return not any(_may_change(node, names) for node in nodes)


def _may_change(node: ast.AST, names: frozenset[str]) -> bool:
    match node:
        case ast.Return():
            return True
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return name in names
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name in names
        case ast.Import() | ast.ImportFrom() | ast.Match():
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):  # ``names.append(...)``
            return name in names
        case (
            ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del())
        ):
            return root_name(node) in names
    return False
