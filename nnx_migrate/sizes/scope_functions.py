"""Functions of a project that build submodules in the scope of the class that calls them.

``def block(x, width): return nn.relu(nn.Dense(width)(x))``, called in a compact method, builds a
``Dense`` of the calling module: Linen names and numbers it there. Such a function is analysed as a
class is, with its body as the compact method; what its callers know before the call takes the place
of fields. Only functions count whose every mention in the project is a plain call in a compact
method or in another such function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.sizes.builders import building_functions
from nnx_migrate.sizes.factories import factory_functions
from nnx_migrate.sizes.helper_methods import as_class, helper_methods
from nnx_migrate.sizes.mentions import Mention, is_defined_once, mentions_of
from nnx_migrate.sizes.static_parameters import Call, given_parameters, parameters_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import walk

# Parameters that the migrated function gains: whose submodules it calls, and the name counter.
OWNER = "module"
COUNTER = "names"
_TAKEN = frozenset({OWNER, COUNTER, "rngs"})
_LINEN_METHODS = frozenset({"apply", "bind", "init", "init_with_output", "lazy_init", "variables"})


@dataclass(frozen=True)
class ScopeFunction:
    """A function or helper method that builds submodules for the classes that call it.

    Attributes:
      cls: the function as a Linen class, its body as the compact ``__call__``.
      known_parameters: the parameters that what it builds depends on and that every caller knows beforehand.
      users: the Linen classes that call it, also through other such functions.
      function: the function as its callers see it: that of a helper method has no receiver.
      method_of: the class whose helper method it is; None for a function.
    """

    symbol: str
    module: Module
    node: ast.FunctionDef
    cls: ClassInfo
    known_parameters: tuple[str, ...]
    users: frozenset[str]
    function: ast.FunctionDef
    method_of: ClassInfo | None = None


def builder_name(name: str) -> str:
    """What builds the submodules of a scope function that code calls ``name``."""
    return f"_init{name}" if name.startswith("_") else f"init_{name}"


def caller_name(name: str) -> str:
    """What calls those submodules where the function itself stays for classes that stay Linen."""
    return f"_call{name}" if name.startswith("_") else f"call_{name}"


@lru_cache(maxsize=2)  # every attempt of a run asks for those of the same project
def scope_functions(project: Project) -> Mapping[int, ScopeFunction]:
    """The scope functions of a project by ``id`` of their node."""
    candidates = _candidates(project)
    mentions = {
        key: list(mentions_of(project, f"{module.name}.{node.name}"))
        for key, (module, node) in candidates.items()
    }
    function_ids = _safe_functions(project, candidates, mentions)
    calls = {key: [_call(one) for one in mentions[key]] for key in function_ids}
    parameters = given_parameters({key: candidates[key][1] for key in function_ids}, calls)
    found: dict[int, ScopeFunction] = {}
    for key in function_ids:
        module, node = candidates[key]
        symbol = f"{module.name}.{node.name}"
        users = _users(key, mentions, function_ids)
        if key in parameters and users:
            found[key] = ScopeFunction(
                symbol, module, node, _as_class(symbol, module, node), parameters[key], users, node
            )
    return {**found, **_helpers(project)}


def _helpers(project: Project) -> dict[int, ScopeFunction]:
    """The helper methods of a project, as scope functions of their classes."""
    helpers = helper_methods(project)
    calls = {key: one.calls for key, one in helpers.items()}
    parameters = given_parameters({key: one.function for key, one in helpers.items()}, calls)
    return {
        key: ScopeFunction(
            f"{one.cls.name}.{one.node.name}",
            one.cls.module,
            one.node,
            as_class(one),
            parameters[key],
            frozenset({one.cls.name}),
            one.function,
            one.cls,
        )
        for key, one in helpers.items()
        if key in parameters
    }


_Candidates = Mapping[int, tuple[Module, ast.FunctionDef]]


def _candidates(project: Project) -> _Candidates:
    """Functions that build submodules themselves or call one that does."""
    factories = factory_functions(project)
    building = building_functions(project)
    return {
        id(node): (module, node)
        for module in project.modules.values()
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef)
        and id(node) not in factories
        and f"{module.name}.{node.name}" in building
        and _is_plain(module, node)
    }


def _is_plain(module: Module, node: ast.FunctionDef) -> bool:
    """Whether the function can gain parameters, and nothing in it is beyond a compact method."""
    spec = node.args
    if node.decorator_list or spec.vararg or spec.kwarg or not (spec.posonlyargs or spec.args):
        return False
    beyond = (ast.Yield, ast.YieldFrom, ast.ClassDef, ast.Global, ast.Nonlocal)
    nodes = list(walk(node))
    names = {one.id for one in nodes if isinstance(one, ast.Name)} | set(parameters_of(node))
    attributes = {one.attr for one in nodes if isinstance(one, ast.Attribute)}
    return (
        not any(isinstance(one, beyond) for one in nodes)
        and not names & _TAKEN
        and not attributes & _LINEN_METHODS
        and is_defined_once(module, node)
        and not {builder_name(node.name), caller_name(node.name)} & module.table.keys()
    )


def _safe_functions(
    project: Project, candidates: _Candidates, mentions: Mapping[int, list[Mention]]
) -> set[int]:
    """The candidates that are only called where submodules can be built, by others of them too."""
    function_ids = set(candidates)
    while True:
        wrong = {
            key
            for key in function_ids
            if not all(_is_in_scope(project, one, function_ids) for one in mentions[key])
            or _calls_itself(key, mentions, function_ids)
        }
        if not wrong:
            return function_ids
        function_ids -= wrong


def _is_in_scope(project: Project, one: Mention, functions: Iterable[int]) -> bool:
    """Whether a mention is a call that runs in a compact method."""
    if one.call is None or one.function is None or not _name_is_free(one):
        return False
    if one.cls is None:
        return id(one.function) in functions
    return one.cls.methods.get(one.function.name) is one.function and project.is_compact(
        one.cls, one.function
    )


def _name_is_free(one: Mention) -> bool:
    """Whether the names of the new functions mean nothing else where the function is called."""
    if not isinstance(one.node, ast.Name):
        return True
    assert one.function is not None
    name, table = one.node.id, one.scope.module.table
    new = {builder_name(name), caller_name(name)}
    is_local = any({name, *new} & inner.keys() for inner in one.scope.tables)
    return name in table and not new & table.keys() and not is_local


def _calls_itself(
    key: int, mentions: Mapping[int, list[Mention]], function_ids: Iterable[int]
) -> bool:
    """Whether a function is among its own callers, at any remove."""
    return key in _callers(key, mentions, function_ids)


def _callers(
    key: int, mentions: Mapping[int, list[Mention]], function_ids: Iterable[int]
) -> set[int]:
    found: set[int] = set()
    todo = [key]
    while todo:
        for one in mentions.get(todo.pop(), ()):
            caller = id(one.function)
            if one.cls is None and caller in function_ids and caller not in found:
                found.add(caller)
                todo.append(caller)
    return found


def _users(
    key: int, mentions: Mapping[int, list[Mention]], function_ids: Iterable[int]
) -> frozenset[str]:
    functions = {key, *_callers(key, mentions, function_ids)}
    every = (one for function in functions for one in mentions[function])
    return frozenset(one.cls.name for one in every if one.cls is not None)


def _call(one: Mention) -> Call:
    assert one.call is not None
    assert one.function is not None
    return Call(one.call, one.function, id(one.function) if one.cls is None else None)


def _as_class(symbol: str, module: Module, node: ast.FunctionDef) -> ClassInfo:
    """The function as a class whose compact ``__call__`` shares the function's own nodes."""
    spec = node.args
    plain = ast.arguments(
        posonlyargs=[],
        args=[ast.copy_location(ast.arg(OWNER), node), *spec.posonlyargs, *spec.args],
        vararg=None,
        kwonlyargs=spec.kwonlyargs,
        kw_defaults=spec.kw_defaults,
        kwarg=None,
        defaults=spec.defaults,
    )
    method = ast.FunctionDef("__call__", plain, node.body, [], node.returns)
    statement = ast.ClassDef(node.name, [], [], [ast.copy_location(method, node)], [])
    return ClassInfo(
        symbol,
        module,
        ast.copy_location(statement, node),
        Scope(module),
        (),
        linen=True,
        function=node,
    )
