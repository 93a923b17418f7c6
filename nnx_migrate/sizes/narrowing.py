"""What a test says about the values it names: not None, or an array of a known rank."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nnx_migrate.abstract.questions import is_instance, without_none
from nnx_migrate.abstract.values import Argument, Array, Choice, Value
from nnx_migrate.sizes.frames import Frame
from nnx_migrate.sizes.ranks import with_fixed_rank
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, names_in


@dataclass(frozen=True)
class Fact:
    """What is known about the value of a local name."""

    name: str
    narrow: Callable[[Value], Value]


@contextmanager
def narrow(project: Project, frame: Frame, test: ast.expr, *, holds: bool) -> Iterator[None]:
    """Run a block in which ``test`` holds, or does not; what it leaves alone is as before after."""
    before = dict(frame.env)
    inside = assume(project, frame, test, holds=holds)
    try:
        yield
    finally:
        for name, value in inside.items():
            if frame.env.get(name) is value:
                frame.env[name] = before[name]


def assume(project: Project, frame: Frame, test: ast.expr, *, holds: bool) -> dict[str, Value]:
    """Narrow the locals from here on; the narrowed ones are returned."""
    inside: dict[str, Value] = {}
    kinds = [_of_class(project, frame, one, holds) for one in _instance_tests(test, holds)]
    for fact in [*_facts(test, holds, frame.tests), *kinds]:
        if fact.name in frame.env:
            inside[fact.name] = frame.env[fact.name] = fact.narrow(frame.env[fact.name])
    return inside


def note_test(targets: list[ast.expr], value: ast.expr, frame: Frame) -> None:
    """Remember ``known = x is not None``, until one of its names changes."""
    is_test = isinstance(value, ast.Compare | ast.BoolOp)
    if not frame.tests and not is_test:
        return
    names = {one.id for target in targets for one in each(target, ast.Name)}
    for local, test in list(frame.tests.items()):
        read = names_in(test)
        if names & {local, *read}:
            del frame.tests[local]
    # ``fast = fast and x.ndim > 2`` tests what the name stood for before.
    if len(names) == 1 and is_test and not names & names_in(value):
        frame.tests[names.pop()] = value


def _facts(test: ast.expr, holds: bool, tests: dict[str, ast.expr]) -> list[Fact]:
    match test:
        case ast.Name(id=name) if name in tests:
            return _facts(tests[name], holds, {})
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is holds:
            return [fact for one in values for fact in _facts(one, holds, tests)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _facts(operand, not holds, tests)
        case ast.Compare(
            left=ast.Name(id=name),
            ops=[ast.Is() | ast.IsNot() as op],
            comparators=[ast.Constant(value=None)],
        ):
            return [Fact(name, without_none)] if isinstance(op, ast.IsNot) is holds else []
        case ast.Compare(
            left=left,
            ops=[ast.Eq() | ast.NotEq() as op],
            comparators=[ast.Constant(value=int(rank))],
        ) if isinstance(op, ast.Eq) is holds and (ranked := _rank_name(left)) is not None:
            return [Fact(ranked, lambda value: _of_rank(value, rank))]
        case _:
            return []


def _instance_tests(test: ast.expr, holds: bool) -> list[ast.Call]:
    """Calls ``isinstance(name, cls)`` in a test, negated ones left out."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(), _]):
            return [test]
        case ast.BoolOp(op=ast.And(), values=values) if holds:
            return [call for one in values for call in _instance_tests(one, holds)]
    return []


def _of_class(project: Project, frame: Frame, call: ast.Call, holds: bool) -> Fact:
    """``isinstance(name, cls)`` leaves the options that are such instances, or those that are not."""
    value, cls = call.args
    assert isinstance(value, ast.Name)
    symbol = project.resolve(cls, frame.scope)

    def narrow(value: Value) -> Value:
        if not isinstance(value, Choice):
            return value
        left = tuple(one for one in value.options if is_instance(one, symbol) in (holds, None))
        return Choice(left) if len(left) > 1 else left[0] if left else value

    return Fact(value.id, narrow)


def _rank_name(node: ast.expr) -> str | None:
    """The local name whose rank ``x.ndim``, ``len(x.shape)`` or ``jnp.ndim(x)`` is."""
    match node:
        case (
            ast.Attribute(value=ast.Name(id=name), attr="ndim")
            | ast.Call(
                func=ast.Name(id="len"),
                args=[ast.Attribute(value=ast.Name(id=name), attr="shape")],
                keywords=[],
            )
            | ast.Call(
                func=ast.Attribute(value=ast.Name(id="jnp" | "np"), attr="ndim"),
                args=[ast.Name(id=name)],
                keywords=[],
            )
        ):
            return name
        case _:
            return None


def _of_rank(value: Value, rank: int) -> Value:
    """The value as an array of this rank, where that may be."""
    if isinstance(value, Argument):
        return Array(path=value.path, rank=rank)
    if isinstance(value, Array) and value.rank is None and value.least <= rank:
        return with_fixed_rank(value, rank)
    return value
