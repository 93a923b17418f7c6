"""One thing that reads annotations, and whose."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.rewrite.outside.annotations.referents import Referents
from nnx_migrate.rewrite.outside.annotations.uses import Anything
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each, walk

_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Reader:
    """Something that reads annotations.

    Attributes:
      reason: what it is, in words.
      read: ids of the statements whose annotations it may read; None where these may be any.
    """

    reason: str
    read: frozenset[int] | None


def reader(referents: Referents, module: Module, what: str, *subjects: ast.expr | None) -> Reader:
    """What reads the annotations of what expressions mean; of anything where one is None."""
    reason = f"{module.name} reads annotations, with {what}"
    found: set[int] = set()
    for one in subjects:
        try:
            if one is None:
                raise Anything
            found |= referents.of(module, one)
        except Anything:
            return Reader(reason, None)
    return Reader(reason, with_named(referents, found))


def with_named(referents: Referents, nodes: Iterable[int]) -> frozenset[int]:
    """Functions and classes, their bases, and the classes that their annotations name.

    Readers go on to these: what makes a class of a dictionary makes those of its fields, too.
    """
    project = referents.project
    statements = _statements(project)
    todo, done = [*nodes], set[int]()
    while todo:
        one = todo.pop()
        if one in done:
            continue
        done.add(one)
        module, node = statements[one]
        cls = project.by_node.get(one)
        todo += [id(above.node) for above in cls.mro] if cls is not None else []
        for annotation in _annotations(node):
            scope = referents.uses.place(module, annotation).scope
            for name in (*walk(annotation), *named_in_strings(annotation)):
                if isinstance(name, ast.Name | ast.Attribute):
                    named = project.classes.get(project.resolve(name, scope) or "")
                    todo += [id(named.node)] if named is not None else []
    return frozenset(done)


@lru_cache(maxsize=2)
def _statements(project: Project) -> dict[int, tuple[Module, ast.AST]]:
    """Every function and class of a project, by ``id``."""
    return {
        id(node): (module, node)
        for module in project.modules.values()
        for node in each(module.tree, _DEFINITIONS)
    }


def _annotations(node: ast.AST) -> Iterator[ast.expr]:
    for one in walk(node):
        for found in (getattr(one, "annotation", None), getattr(one, "returns", None)):
            if isinstance(found, ast.expr):
                yield found


def named_in_strings(annotation: ast.AST) -> Iterator[ast.expr]:
    """The names in an annotation that is a string."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            parsed = ast.parse(annotation.value, mode="eval")
        except SyntaxError:
            return
        for node in walk(parsed):
            if isinstance(node, ast.Name | ast.Attribute):
                yield node
