"""Locals that a statement changes although it names another one.

After ``ys = xs``, ``ys.append(3)`` changes ``xs``; so may a local function that is called. What
``__init__`` needs of ``xs`` it must then do as well, or the class is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from nnx_migrate.rewrite.classes.reading.flow import Bind, Branch, Loop, Step
from nnx_migrate.source.bindings import bound_names, pairs_of, target_names
from nnx_migrate.source.changes import (
    changed_names,
    given_to,
    hidden_changes,
    holders,
)
from nnx_migrate.source.names import FunctionNode, parameter_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

Groups = Mapping[str, frozenset[str]]


def with_aliases(steps: Sequence[Step], method: ast.FunctionDef) -> tuple[Step, ...]:
    """The steps, each with every name that what it changes in place may have."""
    same, parts = _groups(method, whole=True), _groups(method, whole=False)
    return tuple(_named(step, same, parts) for step in steps)


def _named(step: Step, same: Groups, parts: Groups) -> Step:
    match step:
        case Bind(node=node, mutates=mutates) if mutates:
            groups = same if isinstance(node, ast.AugAssign) else parts
            every = frozenset(one for name in mutates for one in groups.get(name, {name}))
            return replace(step, mutates=every)
        case Branch(body=body, orelse=orelse):
            sides = (tuple(_named(one, same, parts) for one in side) for side in (body, orelse))
            return Branch(step.node, step.test, *sides)
        case Loop(body=body):
            return replace(step, body=tuple(_named(one, same, parts) for one in body))
    return step


def _groups(method: ast.FunctionDef, *, whole: bool) -> Groups:
    """Names that may stand for one object, or, unless ``whole``, for a part of another's."""
    groups: dict[str, frozenset[str]] = {}
    for one, other in _links(method, whole=whole):
        together = groups.get(one, frozenset({one})) | groups.get(other, frozenset({other}))
        groups |= dict.fromkeys(together, together)
    return groups


def _links(method: ast.FunctionDef, *, whole: bool) -> Iterator[tuple[str, str]]:
    for node in walk(method):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _holding(target, value, whole=whole)
                names = [one.id for one in targets if isinstance(one, ast.Name)]
                yield from pairwise(names)  # a = b = [4]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from _holding(target, value, whole=whole)
            case ast.For(target=target, iter=value) if not whole:
                yield from _holding(target, value, whole=whole)


def _holding(target: ast.expr, value: ast.expr, *, whole: bool) -> Iterator[tuple[str, str]]:
    for one, other in pairs_of(target, value):
        for name in target_names(one):
            yield from ((name, part) for part in holders(other, whole=whole))


def changed_elsewhere(
    project: Project, scope: Scope, method: ast.FunctionDef
) -> Mapping[str, ast.AST]:
    """Locals that no statement of its own changes, with what does.

    That is a local function that does not bind them, a function of the project that is called, or an expression on
    the way (``f(ws.pop())``).
    """
    found: dict[str, ast.AST] = dict(hidden_changes(method.body))
    for node in walk(method):
        if node is not method and isinstance(node, FunctionNode):
            found |= dict.fromkeys(_changed_around(node), node)
        if isinstance(node, ast.Call):
            found |= dict.fromkeys(_changed_arguments(project, scope, node), node)
    return found


def _changed_around(function: FunctionNode) -> frozenset[str]:
    own = set(parameter_names(function))
    for one in walk(function):
        if isinstance(one, ast.stmt) and one is not function:
            own |= set(bound_names(one))
    return frozenset(changed_names(function) - own)


def _changed_arguments(project: Project, scope: Scope, call: ast.Call) -> Iterator[str]:
    """Locals that a function of the project is passed and changes."""
    function = project.function(project.resolve(call.func, scope))
    if function is None:
        return
    changed = changed_names(function)
    for name, value in given_to(parameter_names(function), call):
        if name in changed:
            yield from holders(value, whole=False)
