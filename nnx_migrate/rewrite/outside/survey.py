"""What classes that stay Linen need from the code around them: it must stay Linen too."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from dataclasses import dataclass

from nnx_migrate.rewrite.outside.data import OutsideContext
from nnx_migrate.source.names import Assignment, Definition, Import, dotted, first_name
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.rebound import Rebound


@dataclass(frozen=True)
class Survey:
    """What stays Linen in the project, and who reads what.

    Attributes:
      unconverted: Linen classes of the project that stay Linen.
      needed: module-level names that those classes use, at any remove; name -> one such class.
    """

    unconverted: tuple[str, ...]
    needed: dict[str, str]


def survey_of(project: Project, context: OutsideContext) -> Survey:
    """Survey the project once per context."""
    known = context.memo.get("survey")
    if isinstance(known, Survey):
        return known
    made = _survey(project, context)
    context.memo["survey"] = made
    return made


def _survey(project: Project, context: OutsideContext) -> Survey:
    unconverted = tuple(name for name in project.linen if name not in context.converted)
    needed: dict[str, str] = {}
    pending: list[tuple[str, str]] = []
    for name in unconverted:
        cls = project.linen[name]
        pending += [(symbol, name) for symbol in loads(project, cls.node, cls.scope)]
    while pending:
        symbol, cls_name = pending.pop()
        if symbol in needed or symbol in project.linen:
            continue
        module, rest = project.split(symbol)
        if module is None or not rest or rest[0] not in module.table:
            continue
        needed[symbol] = cls_name
        for node in definitions(module, rest[0]):
            pending += [(one, cls_name) for one in loads(project, node, Scope(module))]
    return Survey(unconverted, needed)


def definitions(module: Module, name: str) -> Iterator[ast.AST]:
    """What gives a global its meaning; every statement that stores it when there are several."""
    match module.table[name]:
        case Definition(node=node):
            yield node
        case Rebound(node=node, values=values):
            yield from (node, *values)
        case Assignment(value=value):
            yield value
        case Import():
            yield ast.Name(name, ast.Load())
        case _:
            yield from module.stores.get(name, ())


def loads(
    project: Project, node: ast.AST, scope: Scope, names: Container[str] | None = None
) -> Iterator[str]:
    """Project names loaded in ``node``; local names that hide one only widen the answer.

    ``names``: of dotted names only those that begin so.
    """
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Name | ast.Attribute) and dotted(one):
            assert isinstance(one, ast.Name | ast.Attribute)
            head = first_name(one)
            if names is None or head is None or head.id in names:
                yield from _symbols(project, one, scope)
            continue
        todo.extend(ast.iter_child_nodes(one))


def _symbols(project: Project, node: ast.expr, scope: Scope) -> Iterator[str]:
    """The project names on the way of a dotted expression, aliases included."""
    while True:
        if isinstance(node, ast.Name):
            yield f"{scope.module.name}.{node.id}"
            target = getattr(scope.module.table.get(node.id), "target", None)
            if target is not None:
                yield target
        symbol = project.resolve(node, scope)
        if symbol is not None:
            yield symbol
        if not isinstance(node, ast.Attribute):
            return
        node = node.value
