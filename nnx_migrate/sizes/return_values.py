"""What a function of a project returns, where it builds one submodule and does nothing else with Linen."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TypeVar

from nnx_migrate.constructs import layer_of
from nnx_migrate.source.names import defaults_of, named_parameters
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, is_name, is_none_literal, walk

# What the function gains as keyword-only parameters.
IN_FEATURES = "in_features"
RNGS = "rngs"
_Expression = TypeVar("_Expression", ast.expr, ast.expr | None)
_NAME = "name"
_PLACEMENT = frozenset({_NAME, "parent"})
_ADDED = frozenset({IN_FEATURES, RNGS})


def is_module_class(project: Project, symbol: str | None) -> bool:
    """Whether a symbol is a built-in layer or a Linen class of the project."""
    return symbol in project.linen or layer_of(symbol) is not None


def returned_modules(
    project: Project, around: Scope, node: ast.FunctionDef | ast.Lambda, *, named: bool = False
) -> tuple[tuple[ast.Call, str], ...]:
    """The constructor calls that a function returns, with the symbol each builds.

    () when it builds or returns anything else.

    Args:
      around: the scope it is defined in.
      named: whether they may have the name that the function is given (``name=name``).
    """
    scope = around.enter(node)

    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    nodes = [one for statement in body for one in walk(statement)]
    if any(isinstance(one, ast.Yield | ast.YieldFrom | ast.ClassDef) for one in nodes):
        return ()
    values = [one.value for one in nodes if isinstance(one, ast.Return)]
    values += [node.body] if isinstance(node, ast.Lambda) else []
    returned = [arm for one in values for arm in arms(one)]
    calls: list[tuple[ast.Call, str]] = []
    for value in returned:
        if not isinstance(value, ast.Call):
            return ()
        symbol = project.resolve(value.func, scope) or ""
        if not is_module_class(project, symbol) or not _leaves_placement(node, value, named=named):
            return ()
        calls.append((value, symbol))
    names = [one for one in nodes if isinstance(one, ast.Name | ast.Attribute)]
    mentions = [one for one in names if is_module_class(project, project.resolve(one, scope))]
    heads = {id(part) for call, _ in calls for part in walk(call.func)}
    return tuple(calls) if all(id(one) in heads for one in mentions) else ()


def returned_holders(
    project: Project, around: Scope, node: ast.FunctionDef
) -> tuple[tuple[ast.Call, str], ...]:
    """The constructor calls that a function returns, where it builds others for these to hold.

    () where it calls one itself, names one, or does more with their classes than to call them.
    """
    scope = around.enter(node)
    nodes = [one for statement in node.body for one in walk(statement)]
    beyond = ast.Yield | ast.YieldFrom | ast.ClassDef | ast.FunctionDef | ast.Lambda
    if any(isinstance(one, beyond) for one in nodes) or _NAME in _names_of(node):
        return ()
    names = [one for one in nodes if isinstance(one, ast.Name | ast.Attribute)]
    resolved = {id(one): project.resolve(one, scope) or "" for one in names}
    symbols = {key: one for key, one in resolved.items() if is_module_class(project, one)}
    built = [one for one in nodes if isinstance(one, ast.Call) and id(one.func) in symbols]
    keywords = {key.arg for one in built for key in one.keywords}
    called = {id(one.func) for one in nodes if isinstance(one, ast.Call)}
    own = {id(one) for one in built}
    if len(built) < len(symbols) or called & own or keywords & {None, *_PLACEMENT}:
        return ()
    values = [one.value for one in nodes if isinstance(one, ast.Return)]
    returned = {id(arm) for one in values for arm in arms(one)}
    found = [(one, symbols[id(one.func)]) for one in built if id(one) in returned]
    return tuple(found) if len(found) == len(returned) else ()


def arms(value: _Expression) -> list[_Expression]:
    """The values one of which an expression gives: ``a`` and ``b`` of ``a if deep else b``."""
    if isinstance(value, ast.IfExp):
        return [*arms(value.body), *arms(value.orelse)]
    return [value]


def is_extensible(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether keyword-only parameters can be added, under names that mean nothing else there."""
    spec = node.args
    used = _names_of(node)
    return used.isdisjoint(_ADDED) and bool(spec.args or spec.kwonlyargs or spec.vararg)


def is_placed_by_caller(node: ast.FunctionDef | ast.Lambda, *, named: bool) -> bool:
    """Whether a function itself does nothing with a name or parent that it is given."""
    return _names_of(node).isdisjoint({"parent"} if named else _PLACEMENT)


def _names_of(node: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The parameters of a function and the names that it reads or binds."""
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    return {*(one.arg for one in every if one), *(one.id for one in each(node, ast.Name))}


def is_named(node: ast.FunctionDef | ast.Lambda, calls: Collection[ast.Call]) -> bool:
    """Whether a function does nothing with its parameter ``name`` but to give it to all that it builds."""
    takes_name = any(one.arg == _NAME for one in named_parameters(node.args))
    default = defaults_of(node.args).get(_NAME)
    names = [key.value for call in calls for key in call.keywords if key.arg == _NAME]
    uses = [one for one in each(node, ast.Name) if one.id == _NAME]
    return (
        takes_name
        and (default is None or is_none_literal(default))
        and len(names) == len(calls)
        and all(any(one is value for value in names) for one in uses)
    )


def _leaves_placement(node: ast.FunctionDef | ast.Lambda, call: ast.Call, *, named: bool) -> bool:
    """Whether a constructor call cannot name its submodule: that is the caller's to do."""
    spread = [one.value for one in call.args if isinstance(one, ast.Starred)]
    own = node.args.vararg.arg if node.args.vararg is not None else None
    if any(not is_name(one, own) for one in spread):
        return False
    for keyword in call.keywords:
        if keyword.arg == _NAME and named and is_name(keyword.value, _NAME):
            continue
        if keyword.arg in _PLACEMENT:
            return False
        if keyword.arg is None and not _has_known_keys(node, keyword.value):
            return False
    return True


def _has_known_keys(node: ast.FunctionDef | ast.Lambda, value: ast.expr) -> bool:
    """Whether ``**value`` is the function's own ``**kwargs`` or a dict with keys in the text."""
    if not isinstance(value, ast.Name):
        return False
    uses = [one for one in each(node, ast.Name) if one.id == value.id]
    if node.args.kwarg is not None and node.args.kwarg.arg == value.id:
        return all(_is_spread(node, one) or _sets_known_key(node, one) for one in uses)
    if value.id not in {one.id for one in uses if isinstance(one.ctx, ast.Store)}:
        return False
    return all(_is_spread(node, one) or _sets_known_key(node, one) for one in uses)


def _is_spread(node: ast.FunctionDef | ast.Lambda, use: ast.Name) -> bool:
    return any(
        isinstance(one, ast.keyword) and one.arg is None and one.value is use for one in walk(node)
    )


def _sets_known_key(node: ast.FunctionDef | ast.Lambda, use: ast.Name) -> bool:
    """Whether a use is ``d = {"key": ...}`` or ``d["key"] = ...`` with no placement key."""
    for one in walk(node):
        match one:
            case ast.Assign(targets=[target], value=ast.Dict(keys=keys)) if target is use:
                return all(_is_plain_key(key) for key in keys)
            case ast.Subscript(value=value, slice=key, ctx=ast.Store()) if value is use:
                return _is_plain_key(key)
    return False


def _is_plain_key(key: ast.expr | None) -> bool:
    return (
        isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value not in _PLACEMENT
    )
