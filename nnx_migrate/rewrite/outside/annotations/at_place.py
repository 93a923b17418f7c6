"""Annotations that the running program reads: a class there is compared with, or called, as a value."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.outside.annotations.packages import sees_locals, uses_packages
from nnx_migrate.rewrite.outside.annotations.readers import readers
from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.source.names import name_parts
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import callee_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FRAMES = (*_FUNCTIONS, ast.ClassDef)


def reader_of(project: Project, places: Places, place: Place) -> str | None:
    """What may read an annotation at run time, in words; None where nothing does."""
    statement = places.statement(place.node)
    if _is_local(place, statement) and not sees_locals(project):
        return None  # Python keeps it nowhere
    above = [statement, *places.module.parents.above(statement)]
    owners = [one for one in above if isinstance(one, _FRAMES)]
    for owner in owners:
        for decorator in owner.decorator_list:
            if isinstance(decorator, ast.Attribute) and decorator.attr == "register":
                return f"{ast.unparse(decorator)} dispatches by this annotation"
            if uses_packages(project) and not _is_known(project, places, decorator):
                return f"what the decorator {ast.unparse(decorator)} reads is not known"
    ids = {id(one) for one in owners}
    every = readers(project)
    return next((one.reason for one in every if one.read is None or one.read & ids), None)


def _is_local(place: Place, statement: ast.stmt) -> bool:
    """Whether it is of a variable in a function."""
    return isinstance(statement, ast.AnnAssign) and isinstance(place.frame, _FUNCTIONS)


def _is_known(project: Project, places: Places, decorator: ast.expr) -> bool:
    """Whether a decorator has a name that leads to what it is."""
    called = callee_of(decorator)
    parts = name_parts(called)
    if parts is None:
        return False
    scope = places[called].scope
    return scope.lookup(parts[0]) is None or bool(project.meanings(called, scope))
