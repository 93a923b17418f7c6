"""Modules that code makes, runs on variables and drops: ``Block(8, parent=None).apply(variables, x)``.

What an explicit class reads may do that with the lazy form of another one (`sizes.parentless`): arrays go
in, arrays come out, and no module in Linen's style reaches the class that reads it, none of its own the
lazy one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.links import links_of
from nnx_migrate.rewrite.outside.class_members import class_named
from nnx_migrate.rewrite.outside.places import Places
from nnx_migrate.rewrite.proof.called_parameters import called_parameters
from nnx_migrate.rewrite.proof.value_uses import hands_attributes
from nnx_migrate.sizes.parentless import parentless_calls
from nnx_migrate.source.bindings import names_bound_at
from nnx_migrate.source.classes import ClassInfo, arguments_by_field
from nnx_migrate.source.names import named_parameters
from nnx_migrate.source.other_values import is_other_class
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each

_SEVERAL = frozenset(
    {
        *("typing.Sequence", "typing.Tuple", "typing.List", "typing.Mapping", "typing.Optional"),
        *("typing.Union", "collections.abc.Sequence", "collections.abc.Mapping"),
    }
)
_ANY = frozenset({"callable", "object", "type"})  # builtins that do not say what a value is


def is_temporary(project: Project, places: Places, node: ast.AST) -> bool:
    """Whether a name of a class stands where its module is made, run on variables, and nothing more."""
    place = places[node]
    call, cls = place.parent, class_named(project, node, place.scope)
    if cls is None or not isinstance(call, ast.Call) or id(call) not in parentless_calls(project):
        return False
    if any(_may_be_given_modules(project, places, cls, call)):
        return False
    # Linen runs a module that is called in a method in its own scope, a lazy form more than once.
    is_given = any(called_parameters(project, links_of(project), cls))
    return not is_given and _gives_arrays(project, places, cls, call)


def _gives_arrays(project: Project, places: Places, cls: ClassInfo, module: ast.Call) -> bool:
    """Whether what a module is run for are arrays: those of ``__call__``, or the first variables."""
    run = places.parent(module)
    if not isinstance(run, ast.Attribute):
        return False
    if run.attr != "init" and hands_attributes(cls, "__call__"):
        return False
    call = places.parent(run)
    if not isinstance(call, ast.Call) or any(one.arg in ("method", None) for one in call.keywords):
        return False
    symbol = project.resolve(call.func, places[call].scope) or ""
    return call.func is run or symbol.startswith("jax.")


def _may_be_given_modules(
    project: Project, places: Places, cls: ClassInfo, call: ast.Call
) -> Iterator[ast.AST]:
    """Arguments of the constructor that may be modules, or hold some, of the class that reads this code."""
    yield from (one for one in call.args if isinstance(one, ast.Starred))
    yield from (one for one in call.keywords if one.arg is None)
    kinds = {one.name: one.annotation for one in cls.fields}
    for name, value in arguments_by_field(cls, call.args, call.keywords):
        if name not in kinds or not _is_data(project, cls.scope, kinds[name]):
            yield from (one for one in each(value, ast.Name) if not _is_known(project, places, one))


def _is_data(project: Project, scope: Scope, annotation: ast.expr) -> bool:
    """Whether an annotation says arrays, numbers, a configuration, or several of them."""
    match annotation:
        case ast.Constant(value=None):
            return True
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return all(_is_data(project, scope, one) for one in (left, right))
        case ast.Subscript(value=whole, slice=part):
            parts = part.elts if isinstance(part, ast.Tuple) else [part]
            parts = [one for one in parts if not _is_ellipsis(one)]
            several = project.resolve(whole, scope) in _SEVERAL
            several = several or is_other_class(project, scope, whole)
            return several and all(_is_data(project, scope, one) for one in parts)
        case ast.Name(id=name) if name in _ANY:
            return False
    return is_other_class(project, scope, annotation)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _is_known(project: Project, places: Places, node: ast.Name) -> bool:
    """Whether a name means something global, or a parameter that is said to be data."""
    place = places[node]
    if project.resolve(node, place.scope) is not None:
        return True
    frame = place.frame
    if not isinstance(frame, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if any(node.id in names_bound_at(one) for one in each(frame, ast.Name)):
        return False
    outside = places[frame].scope
    every = named_parameters(frame.args)
    kinds = [one.annotation for one in every if one.arg == node.id]
    return any(one is not None and _is_data(project, outside, one) for one in kinds)
