"""The cut between Linen and NNX: which classes must stay Linen because others do.

A class whose base stays Linen stays Linen, and so does the base of a class that stays; a class that
a Linen class constructs stays Linen (an NNX child inside a Linen parent runs without error and
loses its parameters). A converted class may construct one that stays, through ``ToNNX``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import dotted
from nnx_migrate.source.project import Project, Scope


@dataclass(frozen=True)
class Cut:
    """A class that stays Linen because of another one."""

    name: str
    by: str
    reason: str


@dataclass(frozen=True)
class Links:
    """Who inherits from whom, and who builds whom, among the Linen classes of a project."""

    bases: Mapping[str, tuple[str, ...]]
    builds: Mapping[str, tuple[str, ...]]


def links_of(project: Project) -> Links:
    """Read the links off the class statements."""
    bases = {
        name: tuple(parent.name for parent in cls.parents if parent.linen)
        for name, cls in project.linen.items()
    }
    builds = {name: tuple(_mentioned(project, cls)) for name, cls in project.linen.items()}
    return Links(bases, builds)


def _mentioned(project: Project, cls: ClassInfo) -> Iterator[str]:
    """Linen classes named in the class body, its annotations and bases left out."""
    seen = {cls.name}
    for scope, node in _loads(cls.node.body, cls.scope):
        symbol = project.resolve(node, scope)
        if symbol in project.linen and symbol not in seen:
            seen.add(symbol)
            yield symbol


def _loads(body: list[ast.stmt], scope: Scope) -> Iterator[tuple[Scope, ast.expr]]:
    for statement in body:
        inner = scope.enter(statement) if isinstance(statement, ast.FunctionDef) else scope
        skipped = _annotations(statement)
        todo: list[ast.AST] = [statement]
        while todo:
            node = todo.pop()
            if id(node) in skipped:
                continue
            if isinstance(node, ast.Name | ast.Attribute) and dotted(node):
                yield inner, node
                continue
            todo.extend(ast.iter_child_nodes(node))


def _annotations(statement: ast.stmt) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(statement):
        for name in ("annotation", "returns"):
            annotation = getattr(node, name, None)
            if isinstance(annotation, ast.AST):
                found.add(id(annotation))
    return found


def cut(links: Links, staying: frozenset[str], candidates: frozenset[str]) -> tuple[Cut, ...]:
    """Candidates that must join ``staying``, directly or through others (a fixed point)."""
    cuts: dict[str, Cut] = {}
    frontier = list(staying)
    while frontier:
        name = frontier.pop()
        for other, reason in _forced(links, name):
            if other in candidates and other not in staying and other not in cuts:
                cuts[other] = Cut(other, name, reason)
                frontier.append(other)
    return tuple(cuts.values())


def _forced(links: Links, name: str) -> Iterator[tuple[str, str]]:
    for other, bases in links.bases.items():
        if name in bases:
            yield other, f"its base {name} stays Linen"
    for base in links.bases.get(name, ()):
        yield base, f"{name}, which inherits from it, stays Linen"
    for built in links.builds.get(name, ()):
        yield built, f"{name}, which builds it, stays Linen"
