"""Modules that code hands, by position, to callables that are not known.

``Block = nn.remat(Block)`` and ``def make(cls, part): return cls(part)`` build a class out of sight. Where
its fields hold modules, what it is given there must be explicit; by keyword the field's name shows.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from nnx_migrate.constructs import is_linen
from nnx_migrate.rewrite.outside.class_members import class_named, is_module
from nnx_migrate.rewrite.outside.places import Place
from nnx_migrate.source.bindings import names_bound_at
from nnx_migrate.source.classes import arguments_by_field
from nnx_migrate.source.names import parameter_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk


def handed_modules(
    project: Project, places: Iterable[Place]
) -> Iterator[tuple[int | None, ast.Call]]:
    """Calls of what is not known, and which of their arguments may be modules; None: any of them."""
    places = list(places)
    calls = [(one.node, one.scope) for one in places if isinstance(one.node, ast.Call)]
    words = _held(project, (one for one in places if isinstance(one.node, ast.Assign)))
    words |= _fields(project)
    while more := {name for one in calls for name in _given(project, *one, words)} - words:
        words |= more
    for call, scope in calls:
        if _is_known(project, call.func, scope):
            continue
        for position, value in enumerate(call.args):
            if _may_be(project, value, scope, words):
                yield None if isinstance(value, ast.Starred) else position, call


def _values(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def _held(project: Project, places: Iterable[Place]) -> set[str]:
    """Names and attributes that modules are bound to."""
    found: set[str] = set()
    for place in places:
        assert isinstance(place.node, ast.Assign)
        if _may_be(project, place.node.value, place.scope, set()):
            for target in place.node.targets:
                nodes = walk(target)
                found.update(name for one in nodes for name in names_bound_at(one))
                found.update(one.attr for one in nodes if isinstance(one, ast.Attribute))
    return found


def _fields(project: Project) -> set[str]:
    """Fields that are annotated as modules."""
    return {
        one.name
        for cls in project.linen.values()
        for one in cls.fields
        if _may_be(project, one.annotation, cls.scope, set())
    }


def _given(project: Project, call: ast.Call, scope: Scope, words: set[str]) -> Iterator[str]:
    """Parameters of a function of the project, and fields of a class, that a call may give modules."""
    cls = class_named(project, call.func, scope)
    if cls is not None:
        given = arguments_by_field(cls, call.args, call.keywords)
        yield from (name for name, one in given if name and _may_be(project, one, scope, words))
        return
    function = project.function(project.resolve(call.func, scope))
    values = [*call.args, *(one.value for one in call.keywords)]
    if function is not None and any(_may_be(project, one, scope, words) for one in values):
        yield from parameter_names(function)


def _is_known(project: Project, func: ast.expr, scope: Scope) -> bool:
    """Whether a call is one of a class of Linen's or the project's, or of a function."""
    if class_named(project, func, scope) is not None:
        return True
    symbol = project.resolve(func, scope)
    if symbol is None:
        is_global = isinstance(func, ast.Name) and scope.lookup(func.id) is None
        return is_global and hasattr(builtins, func.id)  # type: ignore[attr-defined]
    inside = symbol.partition(".")[0] in {name.partition(".")[0] for name in project.modules}
    return is_linen(symbol) or not inside or project.function(symbol) is not None


def _may_be(project: Project, value: ast.expr, scope: Scope, words: set[str]) -> bool:
    """Whether a value may be a module or hold one, or a class of modules."""
    for node in walk(value):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word):
                symbol = project.resolve(node, scope)
                if word in words or symbol in project.linen or (symbol and is_module(symbol)):
                    return True
    return False
