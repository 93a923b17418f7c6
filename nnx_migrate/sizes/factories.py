"""Functions of a project that build one submodule for the class that calls them.

``def linear(features): return nn.Dense(features)``, called as ``self.proj = ops.linear(64)``. Such a
function is to its callers what a class-valued field is: a callee with Linen's signature, whose layer
needs a size and streams; it may be one of several. Only functions that do nothing else with Linen
count. One that other code mentions, too, stays as it is, and what it builds stays lazy.

A method of the class itself may be such a function (``self._dense(64)``) where all that the project does
with its name is to call it in ``setup`` or in the compact method.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.sizes.mentions import mentions_of
from nnx_migrate.sizes.module_fields import fields_with_modules
from nnx_migrate.sizes.own_calls import RECEIVER, calls_on_self
from nnx_migrate.sizes.return_values import (
    is_extensible,
    is_named,
    is_placed_by_caller,
    returned_modules,
)
from nnx_migrate.sizes.static_parameters import parameters_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.other_values import is_self
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each

_PLAIN = frozenset({"flax.linen.nowrap", "property", "staticmethod"})  # decorators


@dataclass(frozen=True)
class FactoryFunction:
    """A function whose every ``return`` builds a submodule.

    ``calls`` are those constructor calls with the symbol each builds; ``users`` the Linen classes
    that call the function, ``uses`` the ids of their calls. ``is_named``: it takes the name of what it
    builds, by keyword. ``is_fixed``: it cannot take sizes and streams, or other code calls it, too.
    ``method_of``: the class whose method it is.
    """

    symbol: str
    module: Module
    node: ast.FunctionDef
    calls: tuple[tuple[ast.Call, str], ...]
    users: frozenset[str]
    uses: frozenset[int]
    is_named: bool = False
    is_fixed: bool = False
    method_of: ClassInfo | None = None


@lru_cache(maxsize=2)  # every attempt of a run asks for those of the same project
def factory_functions(project: Project) -> Mapping[int, FactoryFunction]:
    """The factory functions of a project by ``id`` of their node."""
    functions = (
        _function(project, module, node)
        for module in project.modules.values()
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    )
    methods = (
        _method(project, cls, node)
        for cls in project.linen.values()
        for node in cls.methods.values()
        if not node.name.startswith("__")
    )
    return {id(one.node): one for one in (*functions, *methods) if one is not None}


def factory_called(project: Project, call: ast.Call) -> FactoryFunction | None:
    """The factory function that a call is one of."""
    return next((one for one in factory_functions(project).values() if id(call) in one.uses), None)


def factory_named(project: Project, symbol: str | None) -> FactoryFunction | None:
    """The factory function of that name."""
    return next((one for one in factory_functions(project).values() if one.symbol == symbol), None)


def built_classes(project: Project, symbol: str | None) -> list[ClassInfo]:
    """The Linen classes of a project of which a class or factory function may build one."""
    function = factory_named(project, symbol)
    symbols = [name for _, name in function.calls] if function is not None else [symbol]
    return [project.linen[name] for name in symbols if name in project.linen]


def _function(project: Project, module: Module, node: ast.FunctionDef) -> FactoryFunction | None:
    calls = returned_modules(project, Scope(module), node, named=True)
    named = is_named(node, [call for call, _ in calls])
    if not calls or not is_placed_by_caller(node, named=named):
        return None
    symbol = f"{module.name}.{node.name}"
    every = [*mentions_of(project, symbol)]
    most = _before_name(node) if named else None
    others = {one.cls.name for one in every if one.cls and not _is_use(one.call, most)}
    uses = [one for one in every if one.cls and one.cls.name not in others]
    users = frozenset(one.cls.name for one in uses if one.cls)
    keys = frozenset(id(one.call) for one in uses)
    fixed = len(uses) < len(every) or not is_extensible(node)
    return FactoryFunction(symbol, module, node, calls, users, keys, named, fixed) if uses else None


def _method(project: Project, cls: ClassInfo, node: ast.FunctionDef) -> FactoryFunction | None:
    calls = returned_modules(project, cls.scope, node, named=True)
    named = is_named(node, [call for call, _ in calls])
    is_plain = is_placed_by_caller(node, named=named) and _reads_own_fields(project, cls, node)
    if not calls or not is_plain or not is_extensible(node) or _may_be_overridden(project, cls):
        return None
    homes = [
        one for name, one in cls.methods.items() if name == "setup" or project.is_compact(cls, one)
    ]
    found = calls_on_self(project, cls, node.name, homes) or []
    most = _before_name(node) - 1 if named else None
    if not found or not all(_is_use(call, most) for call, _ in found):
        return None
    symbol, uses = f"{cls.name}.{node.name}", frozenset(id(call) for call, _ in found)
    users = frozenset({cls.name})
    return FactoryFunction(symbol, cls.module, node, calls, users, uses, named, method_of=cls)


def _reads_own_fields(
    project: Project, cls: ClassInfo, node: ast.FunctionDef, inside: tuple[str, ...] = ()
) -> bool:
    """Whether all that a method does with its module is to read its plain fields, also by such methods."""
    decorators = project.decorators(cls, node)
    if not _PLAIN.issuperset(decorators) or node.name in inside:
        return False
    if "staticmethod" in decorators:
        return True
    modules = fields_with_modules(project)
    plain = {one.name for one in cls.fields if (cls.name, one.name) not in modules}
    plain.update(_constants(cls))
    own = [one for one in each(node, ast.Attribute) if is_self(one.value)]
    names = [one for one in each(node, ast.Name) if one.id == RECEIVER]
    return (
        parameters_of(node)[:1] == (RECEIVER,)
        and len(own) == len(names)
        and all(isinstance(one.ctx, ast.Load) for one in own)
        and all(
            one.attr in plain
            or (
                one.attr in cls.methods
                and _reads_own_fields(project, cls, cls.methods[one.attr], (*inside, node.name))
            )
            for one in own
        )
    )


def _constants(cls: ClassInfo) -> Iterator[str]:
    """Names that the class body gives a constant or a lambda, and that are no fields."""
    for one in cls.node.body:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.Lambda()):
                yield name


def _may_be_overridden(project: Project, cls: ClassInfo) -> bool:
    """Whether another class has the methods of this one, or it those of another."""
    heirs = any(cls in one.mro[1:] for one in project.classes.values())
    return heirs or any(one.linen for one in cls.mro[1:])


def _before_name(node: ast.FunctionDef) -> int:
    """How many arguments stand in front of the name."""
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    return names.index("name") if "name" in names else len(names)


def _is_use(call: ast.Call | None, most: int | None) -> bool:
    """Whether a mention is a call whose caller names the submodule, if anybody.

    Args:
      most: how many arguments a call may give by position where the rest goes by keyword.
    """
    if call is None:
        return False
    return most is None or not (len(call.args) > most or _is_spread(call))


def _is_spread(call: ast.Call) -> bool:
    """Whether a call unpacks arguments: one of them may be any."""
    return any(isinstance(one, ast.Starred) for one in call.args) or any(
        one.arg is None for one in call.keywords
    )
