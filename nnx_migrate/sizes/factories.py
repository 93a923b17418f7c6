"""Functions of a project that build one submodule for the class that calls them.

``def linear(features): return nn.Dense(features)``, called as ``self.proj = ops.linear(64)``. Such a
function is to its callers what a class-valued field is: a callee with Linen's signature, whose layer
needs a size and streams. Only functions that do nothing else with Linen count, and only when every
mention of them in the project is a call in a Linen class.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.sizes.layers import is_layer
from nnx_migrate.sizes.mentions import mentions_of
from nnx_migrate.source.project import Module, Project, Scope

# What the function gains as keyword-only parameters.
IN_FEATURES = "in_features"
RNGS = "rngs"
_TAKEN = frozenset({IN_FEATURES, RNGS, "name", "parent"})
_PLACEMENT = frozenset({"name", "parent"})


@dataclass(frozen=True)
class FactoryFunction:
    """A module-level function whose every ``return`` builds a submodule.

    ``calls`` are those constructor calls with the symbol each builds; ``users`` the Linen classes
    that call the function.
    """

    symbol: str
    module: Module
    node: ast.FunctionDef
    calls: tuple[tuple[ast.Call, str], ...]
    users: frozenset[str]


@lru_cache(maxsize=2)  # every attempt of a run asks for those of the same project
def factory_functions(project: Project) -> Mapping[int, FactoryFunction]:
    """The factory functions of a project by ``id`` of their node."""
    found: dict[int, FactoryFunction] = {}
    for module in project.modules.values():
        for node in module.tree.body:
            if not isinstance(node, ast.FunctionDef) or node.decorator_list:
                continue
            calls = _built(project, module, node)
            symbol = f"{module.name}.{node.name}"
            users = _users(project, symbol) if calls and _is_extensible(node) else None
            if users:
                found[id(node)] = FactoryFunction(symbol, module, node, calls, users)
    return found


def is_module_class(project: Project, symbol: str | None) -> bool:
    """Whether a symbol is a built-in layer or a Linen class of the project."""
    return symbol in project.linen or is_layer(symbol)


def _built(
    project: Project, module: Module, node: ast.FunctionDef
) -> tuple[tuple[ast.Call, str], ...]:
    """The constructor calls that the function returns; () when it builds or returns anything else."""
    scope = Scope(module).enter(node)
    nodes = [one for statement in node.body for one in ast.walk(statement)]
    if any(isinstance(one, ast.Yield | ast.YieldFrom | ast.ClassDef) for one in nodes):
        return ()
    returned = [one.value for one in nodes if isinstance(one, ast.Return)]
    calls: list[tuple[ast.Call, str]] = []
    for value in returned:
        symbol = project.resolve(value.func, scope) if isinstance(value, ast.Call) else None
        if not isinstance(value, ast.Call) or symbol is None:
            return ()
        if not is_module_class(project, symbol) or not _leaves_placement(node, value):
            return ()
        calls.append((value, symbol))
    names = [one for one in nodes if isinstance(one, ast.Name | ast.Attribute)]
    mentions = [one for one in names if is_module_class(project, project.resolve(one, scope))]
    heads = {id(call.func) for call, _ in calls}
    return tuple(calls) if all(id(one) in heads for one in mentions) else ()


def _is_extensible(node: ast.FunctionDef) -> bool:
    """Whether keyword-only parameters can be added, under names that mean nothing else there."""
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    names = {one.arg for one in every if one}
    bound = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return not (names | bound) & _TAKEN and bool(spec.args or spec.kwonlyargs or spec.vararg)


def _leaves_placement(node: ast.FunctionDef, call: ast.Call) -> bool:
    """Whether a constructor call cannot name its submodule: that is the caller's to do."""
    if any(isinstance(one, ast.Starred) for one in call.args):
        return False
    for keyword in call.keywords:
        if keyword.arg in _PLACEMENT:
            return False
        if keyword.arg is None and not _has_known_keys(node, keyword.value):
            return False
    return True


def _has_known_keys(node: ast.FunctionDef, value: ast.expr) -> bool:
    """Whether ``**value`` is the function's own ``**kwargs`` or a dict with keys in the text."""
    if not isinstance(value, ast.Name):
        return False
    uses = [one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == value.id]
    if node.args.kwarg is not None and node.args.kwarg.arg == value.id:
        return all(_is_spread(node, one) for one in uses)
    if value.id not in {one.id for one in uses if isinstance(one.ctx, ast.Store)}:
        return False
    return all(_is_spread(node, one) or _sets_known_key(node, one) for one in uses)


def _is_spread(node: ast.FunctionDef, use: ast.Name) -> bool:
    return any(
        isinstance(one, ast.keyword) and one.arg is None and one.value is use
        for one in ast.walk(node)
    )


def _sets_known_key(node: ast.FunctionDef, use: ast.Name) -> bool:
    """Whether a use is ``d = {"key": ...}`` or ``d["key"] = ...`` with no placement key."""
    for one in ast.walk(node):
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


def _users(project: Project, symbol: str) -> frozenset[str] | None:
    """The Linen classes that call the function; None when it is used in any other way."""
    users: set[str] = set()
    for one in mentions_of(project, symbol):
        if one.cls is None or one.call is None:
            return None
        users.add(one.cls.name)
    return frozenset(users)
