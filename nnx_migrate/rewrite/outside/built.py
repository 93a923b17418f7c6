"""Constructor calls of converted classes: which class a call builds, and whether it is all NNX."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.links import links_of
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import Assignment, Definition
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.rebound import Rebound
from nnx_migrate.source.walking import walk

_DEPTH = 5  # longest chain of partials that is followed


def class_of(
    project: Project, function: ast.expr, scope: Scope, context: OutsideContext, depth: int = _DEPTH
) -> ClassInfo | None:
    """The converted class that calling ``function`` builds, directly or through partials."""
    if depth == 0:
        return None
    if isinstance(function, ast.Subscript):  # a generic class with its types
        return class_of(project, function.value, scope, context, depth - 1)
    if isinstance(function, ast.Call):
        if project.resolve(function.func, scope) == "functools.partial" and function.args:
            return class_of(project, function.args[0], scope, context, depth - 1)
        return None
    if isinstance(function, ast.Name):
        match scope.lookup(function.id):
            case Definition(node=ast.ClassDef() as node) | Rebound(node=node):
                cls = project.by_node.get(id(node))
                return cls if cls and cls.name in context.rewritten else None
            case Assignment(value=ast.Call() as value):
                return class_of(project, value, scope, context, depth - 1)
    symbol = project.resolve(function, scope)
    if symbol is None:
        return None
    if symbol in context.rewritten:
        return project.linen.get(symbol)
    definition = project.definition(symbol)
    if definition is None or not isinstance(definition[1], ast.Call):
        return None
    return class_of(project, definition[1], Scope(definition[0]), context, depth - 1)


def linen_part(project: Project, cls: ClassInfo, context: OutsideContext) -> str | None:
    """A class that stays Linen and that ``cls`` builds, at any remove, through ``ToNNX``."""
    links = links_of(project)
    pending, seen = [cls.name], {cls.name}
    while pending:
        name = pending.pop()
        for other in (*links.builds.get(name, ()), *links.bases.get(name, ())):
            if other not in context.converted:
                return other
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return None


def bad_argument(
    project: Project, call: ast.Call, scope: Scope, context: OutsideContext, draft: Draft
) -> str | None:
    """Why the arguments of a constructor call cannot be handed to the converted class."""
    for child in (*call.args, *(one.value for one in call.keywords)):
        for node in walk(child):
            if id(node) in draft.refused:
                return "its arguments use a Linen name that is not rewritten"
            if isinstance(node, ast.Call) and class_of(project, node.func, scope, context):
                return "its arguments build another module; rngs and sizes must be passed by hand"
            if isinstance(node, ast.Name | ast.Attribute):
                symbol = project.resolve(node, scope)
                if symbol in project.linen and symbol not in context.converted:
                    return f"its arguments name {symbol}, which stays Linen"
    return None
