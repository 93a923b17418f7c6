"""Functions and methods of a project that build one submodule for the class that calls them.

``def linear(features): return nn.Dense(features)``, called as ``self.proj = ops.linear(64)``. Such a
function is to its callers what a class-valued field is: a callee with Linen's signature, whose layer
needs a size and streams. Only functions that do nothing else with Linen count, and only when every
mention of them in the project is a call in a Linen class. A factory method is the same for its own
class: ``self.proj = self.linear(64)``; a class method builds its own class for others:
``self.proj = Block.from_width(64)``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.sizes.annotations import annotated_symbol
from nnx_migrate.sizes.mentions import loads_of, mentions_of
from nnx_migrate.sizes.own_calls import RECEIVER, calls_on_self, is_quoted, reads_of_others
from nnx_migrate.sizes.return_values import is_extensible, is_module_class, returned_modules
from nnx_migrate.sizes.static_parameters import parameters_of
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.other_values import is_self
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import walk


@dataclass(frozen=True)
class FactoryFunction:
    """A function whose every ``return`` builds a submodule.

    ``calls`` are those constructor calls with the symbol each builds; ``users`` the Linen classes
    that call the function; ``method_of`` is the class of a method, and ``in_setup`` says that only
    its setup calls it, where attributes name what is built.
    """

    symbol: str
    module: Module
    node: ast.FunctionDef
    calls: tuple[tuple[ast.Call, str], ...]
    users: frozenset[str]
    method_of: ClassInfo | None = None
    in_setup: bool = False


@lru_cache(maxsize=2)  # every attempt of a run asks for those of the same project
def factory_functions(project: Project) -> Mapping[int, FactoryFunction]:
    """The factory functions and methods of a project by ``id`` of their node."""
    methods = [
        (cls, node)
        for cls in project.linen.values()
        for name, node in cls.methods.items()
        if name != "setup" and not name.startswith("__")
    ]
    of_classes = [_class_method(project, *one) for one in methods]
    makes = {one.symbol: one.calls[0][1] for one in of_classes if one is not None}
    functions = (
        _function(project, module, node, makes)
        for module in project.modules.values()
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    )
    own = (_method(project, *one, makes) for one in methods)
    return {id(one.node): one for one in (*of_classes, *functions, *own) if one is not None}


def _function(
    project: Project, module: Module, node: ast.FunctionDef, makes: Mapping[str, str]
) -> FactoryFunction | None:
    calls = returned_modules(project, Scope(module), node, makes)
    symbol = f"{module.name}.{node.name}"
    users = _users(project, symbol) if calls and is_extensible(node) else None
    return FactoryFunction(symbol, module, node, calls, users) if users else None


def _users(project: Project, symbol: str) -> frozenset[str] | None:
    """The Linen classes that call the function; None when it is used in any other way."""
    users: set[str] = set()
    for one in mentions_of(project, symbol):
        if one.cls is None or one.call is None:
            return None
        users.add(one.cls.name)
    return frozenset(users)


def _method(
    project: Project, cls: ClassInfo, node: ast.FunctionDef, makes: Mapping[str, str]
) -> FactoryFunction | None:
    """The method as a factory, where setup and compact methods of its classes alone call it."""
    calls = returned_modules(project, cls.scope, node, makes)
    if not calls or not is_extensible(node) or not _only_reads_fields(project, cls, node):
        return None
    heirs = [one for one in project.classes.values() if cls in one.mro[1:]]
    if any(node.name in one.methods for one in (*cls.mro[1:], *heirs)):
        return None
    owners = {
        id(method): one
        for one in (cls, *heirs)
        for method in one.methods.values()
        if method.name == "setup" or project.is_compact(one, method)
    }
    methods = [method for one in (cls, *heirs) for method in one.methods.values()]
    homes = [one for one in methods if id(one) in owners]
    found = calls_on_self(project, cls, node.name, homes)
    if not found:
        return None
    users = frozenset(owners[id(home)].name for _, home in found)
    in_setup = all(home.name == "setup" for _, home in found)
    symbol = f"{cls.name}.{node.name}"
    return FactoryFunction(symbol, cls.module, node, calls, users, cls, in_setup)


def _class_method(
    project: Project, cls: ClassInfo, node: ast.FunctionDef
) -> FactoryFunction | None:
    """A class method that builds its class, where Linen classes alone call it, by the class's name."""
    names = parameters_of(node)
    if project.decorators(cls, node) != ("classmethod",) or not names or not is_extensible(node):
        return None
    calls = returned_modules(project, cls.scope, node, {names[0]: cls.name})
    heads = {id(call.func) for call, _ in calls}
    nodes = [one for one in walk(node) if isinstance(one, ast.Name) and one.id == names[0]]
    related = any(cls in one.mro[1:] for one in project.classes.values())
    related = related or any(node.name in one.methods for one in cls.mro[1:])
    if not calls or related or any(id(one) not in heads for one in nodes):
        return None
    symbol = f"{cls.name}.{node.name}"
    users = _named_users(project, cls, node.name, symbol)
    return FactoryFunction(symbol, cls.module, node, calls, users, cls) if users else None


def _named_users(project: Project, cls: ClassInfo, name: str, symbol: str) -> frozenset[str] | None:
    """The Linen classes that call a method by its class's name; None when it is used otherwise."""
    users: set[str] = set()
    others = reads_of_others(project, cls, name)
    for one in loads_of(project, name):
        if not isinstance(one.node, ast.Attribute) or id(one.node) in others:
            continue
        found = project.resolve(one.node, one.scope)
        if found is None or (found == symbol and (one.cls is None or one.call is None)):
            return None
        if found == symbol and one.cls is not None:
            users.add(one.cls.name)
    return frozenset(users) if not is_quoted(project, name) else None


def _only_reads_fields(project: Project, cls: ClassInfo, node: ast.FunctionDef) -> bool:
    """Whether all that a method has of its module are fields, which ``__init__`` sets first."""
    if set(project.decorators(cls, node)) - {"flax.linen.nowrap"}:
        return False
    given = [one.arg for one in walk(node) if isinstance(one, ast.arg)]
    if parameters_of(node)[:1] != (RECEIVER,) or given.count(RECEIVER) > 1:
        return False
    fields = {one.name for one in cls.fields if not _holds_module(project, one)}
    fields -= {"name", "parent", *cls.reassigned}
    reads = [
        id(one.value)
        for one in walk(node)
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load) and one.attr in fields
    ]
    return all(id(one) in reads for one in walk(node) if isinstance(one, ast.Name) and is_self(one))


def _holds_module(project: Project, field: Field) -> bool:
    """Whether a field is declared to hold a module, which what is built would hold, too."""
    symbol = annotated_symbol(project, field)
    return symbol == "flax.linen.Module" or is_module_class(project, symbol)
