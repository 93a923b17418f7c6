"""Methods of a class, and functions inside of its methods, that build one submodule for it.

``def dense(self, n): return nn.Dense(n)``, called as ``self.dense(4)`` where all that the project does with
its name is to call it in ``setup`` or in the compact method; ``dense = lambda n: nn.Dense(n)`` there.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from nnx_migrate.sizes.factory_calls import FactoryFunction, before_name, is_use
from nnx_migrate.sizes.fields.constructor_arguments import fields_with_modules
from nnx_migrate.sizes.helper_methods import is_inherited
from nnx_migrate.sizes.own_calls import RECEIVER, calls_on_self
from nnx_migrate.sizes.return_values import (
    is_extensible,
    is_module_class,
    is_named,
    is_placed_by_caller,
    returned_modules,
)
from nnx_migrate.sizes.static_parameters import parameters_of
from nnx_migrate.source.bindings import bindings_below, names_bound_at
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, given_values, is_name, is_self, names_in, walk

_PLAIN = frozenset({"flax.linen.nowrap", "property", "staticmethod"})  # decorators
_Function = ast.FunctionDef | ast.Lambda


def own_factories(project: Project) -> Iterator[FactoryFunction]:
    """Those of all Linen classes; of a class that others inherit from, or that inherits, none."""
    for cls in project.linen.values():
        if is_inherited(project, cls):
            continue
        homes = [
            one
            for name, one in cls.methods.items()
            if name == "setup" or project.is_compact(cls, one)
        ]
        for node in cls.methods.values():
            if not node.name.startswith("__"):
                yield from _method(project, cls, node, homes)
        for home in homes:
            for name, inner in _functions_inside(home):
                yield from _local(project, cls, home, name, inner)


def _method(
    project: Project, cls: ClassInfo, node: ast.FunctionDef, homes: list[ast.FunctionDef]
) -> Iterator[FactoryFunction]:
    calls = returned_modules(project, cls.scope, node, named=True)
    if not calls:
        return
    named = is_named(node, [call for call, _ in calls])
    is_plain = is_placed_by_caller(node, named=named) and _reads_own_fields(project, cls, node)
    if not is_plain or not is_extensible(node):
        return
    found = calls_on_self(project, cls, node.name, homes) or []
    most = before_name(node) - 1 if named else None
    if found and all(is_use(call, most) for call, _ in found):
        symbol, uses = f"{cls.name}.{node.name}", frozenset(id(call) for call, _ in found)
        users = frozenset({cls.name})
        yield FactoryFunction(symbol, cls.module, node, calls, users, uses, named, method_of=cls)


def _functions_inside(method: ast.FunctionDef) -> Iterator[tuple[str, _Function]]:
    for statement in walk(method):
        match statement:
            case ast.FunctionDef(name=name, decorator_list=[]) if statement is not method:
                yield name, statement
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as function):
                yield name, function


def _local(
    project: Project, cls: ClassInfo, method: ast.FunctionDef, name: str, node: _Function
) -> Iterator[FactoryFunction]:
    """One that the method alone calls, and not inside of another function."""
    calls = returned_modules(project, cls.scope.enter(method), node, named=True)
    named = is_named(node, [call for call, _ in calls])
    if not calls or not is_placed_by_caller(node, named=named) or not is_extensible(node):
        return
    functions = each(method, ast.FunctionDef | ast.Lambda | ast.ClassDef)
    inner = {id(one) for other in functions if other is not method for one in walk(other)}
    loads = [one for one in each(method, ast.Name) if one.id == name and _is_load(one)]
    uses = [
        one for one in each(method, ast.Call) if is_name(one.func, name) and id(one) not in inner
    ]
    most = before_name(node) if named else None
    is_only_called = len(uses) == len(loads) > 0 and all(is_use(one, most) for one in uses)
    if is_only_called and _reads_what_stays(project, cls, method, node, name):
        symbol = f"{cls.name}.{method.name}.<locals>.{name}"
        keys, users = frozenset(map(id, uses)), frozenset({cls.name})
        yield FactoryFunction(
            symbol, cls.module, node, calls, users, keys, named, method_of=cls, is_local=True
        )


def _reads_what_stays(
    project: Project, cls: ClassInfo, method: ast.FunctionDef, node: _Function, name: str
) -> bool:
    """Whether a local function reads fields, and locals that are bound once, above it, to no module.

    What it reads is looked up when it is called, and ``__init__`` calls it elsewhere.
    """
    own = {id(one) for one in walk(node)}
    bound = [
        (word, part)
        for part in walk(method)
        if id(part) not in own or part is node
        for word in names_bound_at(part)
    ]
    words = [word for word, _ in bound]
    lines = {word: getattr(part, "lineno", 0) for word, part in bound}
    parameters = {one.arg for one in each(node, ast.arg)}
    free = {one.id for one in each(node, ast.Name) if _is_load(one)} - parameters
    read = {word for word in free if word in words} - {RECEIVER}
    return (
        words.count(name) == 1
        and all(words.count(word) == 1 and lines[word] < node.lineno for word in read)
        and not _may_change(method, own, read)
        and not _may_be_modules(project, cls, method, read)
        and _reads_plain(project, cls, node, ())
    )


def _may_change(method: ast.FunctionDef, own: Collection[int], names: Collection[str]) -> bool:
    """Whether the method makes one of these a list or an object, and code around the function has it in hand.

    ``widths.append(5)`` between two calls of the function; ``widths[0]`` and ``n + 1`` only read.
    """
    made = {
        one.id
        for target, value in bindings_below(method)
        if not isinstance(value, ast.Constant | ast.Attribute | ast.BinOp | ast.Tuple | ast.Lambda)
        for one in each(target, ast.Name)
    }
    inside = [node for node in walk(method) if id(node) not in own]
    owners = [one.value for one in inside if isinstance(one, ast.Attribute)]
    owners += [one.value for one in inside if isinstance(one, ast.Subscript) and not _is_load(one)]
    for one in inside:
        if isinstance(one, ast.Call):
            owners += given_values(one)
    return any(isinstance(one, ast.Name) and one.id in made & {*names} for one in owners)


def _may_be_modules(
    project: Project, cls: ClassInfo, method: ast.FunctionDef, names: Collection[str]
) -> bool:
    """Whether a local name holds a submodule, or what is computed with one."""
    scope, todo, visited = cls.scope.enter(method), [*names], set[str]()
    bindings = [*bindings_below(method)]
    while todo:
        visited.add(word := todo.pop())
        for target, value in bindings:
            if word not in names_in(target):
                continue
            for node in walk(value):
                if isinstance(node, ast.Call) and is_module_class(
                    project, project.resolve(node.func, scope)
                ):
                    return True
                if isinstance(node, ast.Name) and node.id not in visited:
                    todo.append(node.id)
    return False


def _is_load(node: ast.Name | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Load)


def _reads_own_fields(
    project: Project, cls: ClassInfo, node: ast.FunctionDef, inside: tuple[str, ...] = ()
) -> bool:
    """Whether all that a method does with its module is to read its plain fields, also by such methods."""
    decorators = project.decorators(cls, node)
    if not _PLAIN.issuperset(decorators) or node.name in inside:
        return False
    if "staticmethod" in decorators:
        return True
    is_own = parameters_of(node)[:1] == (RECEIVER,)
    return is_own and _reads_plain(project, cls, node, (*inside, node.name))


def _reads_plain(
    project: Project, cls: ClassInfo, node: FunctionNode, inside: tuple[str, ...]
) -> bool:
    modules = fields_with_modules(project)
    plain = {one.name for one in cls.fields if (cls.name, one.name) not in modules}
    plain.update(_constants(cls))
    own = [one for one in each(node, ast.Attribute) if is_self(one.value)]
    names = [one for one in each(node, ast.Name) if one.id == RECEIVER]
    return len(own) == len(names) and all(
        isinstance(one.ctx, ast.Load)
        and (
            one.attr in plain
            or (
                one.attr in cls.methods
                and _reads_own_fields(project, cls, cls.methods[one.attr], inside)
            )
        )
        for one in own
    )


def _constants(cls: ClassInfo) -> Iterator[str]:
    """Names that the class body gives a constant or a lambda, and that are no fields."""
    for one in cls.node.body:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.Lambda()):
                yield name
