"""Which names of a project are given which values: variables, attributes, entries of dicts, what functions return.

Of ``head = make()`` and ``Net(act=head)`` the variable ``head`` is given what ``make`` returns, and the
attribute ``act`` of ``Net`` is given what ``head`` is. What the names hold then is for the reader to say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.rewrite.outside.class_members import class_named
from nnx_migrate.source.bindings import CHANGES, bindings_below
from nnx_migrate.source.classes import arguments_by_field
from nnx_migrate.source.modules import FUNCTIONS, Module, Scope
from nnx_migrate.source.names import (
    FunctionNode,
    defaults_of,
    function_table,
    last_name,
    named_parameters,
)
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, given_values, is_name, walk

Key = tuple[str, str, str]  # the kind of name, whose it is, and the word; "name()": what it returns

_DATA = (ast.Constant, ast.Compare, ast.JoinedStr, ast.UnaryOp)


def flows(project: Project, module: Module) -> Iterator[tuple[Key, ast.expr, Scope]]:
    """Every name of a module that is given a value, and the value."""
    scopes: dict[int, Scope] = {}

    def scope_of(node: ast.AST) -> Scope:
        around = next(iter(module.parents.functions(node)), module.tree)
        if id(around) not in scopes:
            scopes[id(around)] = Scope(module).around(node)
        return scopes[id(around)]

    for target, value in bindings_below(module.tree):
        if isinstance(value, ast.Lambda):
            around = scope_of(value)
            for key in _targets(project, module, target):
                yield key, value, around
                if not isinstance(target, ast.Subscript):  # that holds the function, and is none
                    yield result_key(key), value.body, around.enter(value)
        elif isinstance(value, ast.expr) and not isinstance(value, _DATA):
            yield from ((key, value, scope_of(value)) for key in _targets(project, module, target))
    yield from ((key, value, scope_of(value)) for key, value in _entries(module))
    for function in each(module.tree, ast.FunctionDef):
        for value in _results(function):
            yield from (
                (result_key(k), value, scope_of(value)) for k in _targets(project, module, function)
            )
        yield from ((key, one, scope_of(one)) for key, one in _pytest_parameters(function))
        for name, value in defaults_of(function.args).items():
            if not isinstance(value, _DATA):
                yield _local(function, name), value, scope_of(value)
        for name in parameters(function):
            for home, value in _fixtures(project).get(name, ()):
                yield _local(function, name), value, Scope(home).around(value)
    for call in each(module.tree, ast.Call):
        if not all(isinstance(one, _DATA) for one in given_values(call)):
            scope = scope_of(call)
            yield from ((key, one, scope) for key, one in _arguments(project, call, scope))


def decorator_links(project: Project, module: Module) -> Iterator[tuple[Key, Key]]:
    """Parameters by which decorators get functions, each with the function's name.

    ``f`` and ``mlp`` of ``@register("mlp") def mlp(width): ...`` with ``def register(name): def keep(f): ...``.
    """
    for function in each(module.tree, ast.FunctionDef):
        scope = Scope(module).around(function) if function.decorator_list else Scope(module)
        for one in function.decorator_list:
            called = one.func if isinstance(one, ast.Call) else one
            for decorator in functions_of(project, called, scope):
                for taker in each(decorator, ast.FunctionDef):
                    for name in parameters(taker):
                        for key in _targets(project, module, function):
                            yield _local(taker, name), key


def _results(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a function returns or yields, but for plain data."""
    for one in each(function, ast.Return | ast.Yield):
        if one.value is not None and not isinstance(one.value, _DATA):
            yield one.value


def _pytest_parameters(function: ast.FunctionDef) -> Iterator[tuple[Key, ast.expr]]:
    """What pytest gives parameters: ``@pytest.mark.parametrize("act", ACTS)``, ``@pytest.fixture(params=ACTS)``."""
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, values, *_]):
                yield from ((_local(function, one), values) for one in parameters(function))
            case ast.Call(keywords=keywords):
                yield from (
                    (("attribute", "", "param"), k.value) for k in keywords if k.arg == "params"
                )


@lru_cache(maxsize=4)  # every function asks
def _fixtures(project: Project) -> Mapping[str, Sequence[tuple[Module, ast.expr]]]:
    """What pytest's fixtures give, by their names, which are those of tests' parameters."""
    found: dict[str, list[tuple[Module, ast.expr]]] = {}
    for module in project.modules.values():
        for function in each(module.tree, ast.FunctionDef) if "fixture" in module.by_word else ():
            words = (one for decorator in function.decorator_list for one in walk(decorator))
            if any(
                isinstance(one, ast.Name | ast.Attribute) and last_name(one) == "fixture"
                for one in words
            ):
                found.setdefault(function.name, []).extend(
                    (module, one) for one in _results(function)
                )
    return found


def result_key(key: Key) -> Key:
    """What the function of that name returns."""
    return f"{key[0]}()", key[1], key[2]


def _name(module: Module, node: ast.AST, name: str) -> Key:
    """The variable that a name means at a node of a module: one of a function around it, or global."""
    for function in module.parents.functions(node):
        if name in function_table(function, module.package):
            return _local(function, name)
    return "name", module.name, name


def _local(function: FunctionNode, name: str) -> Key:
    """A parameter of a function, or a variable of its own."""
    return "name", str(id(function)), name


def _attribute(project: Project, module: Module, node: ast.Attribute) -> Iterator[Key]:
    """The attribute of the modules' class around, if it is one of ``self``; else of any object."""
    for function in module.parents.functions(node):
        cls = project.by_node.get(id(module.parents.of(function)))
        if cls is None or not cls.linen or not isinstance(function, ast.FunctionDef):
            continue
        if is_name(node.value, receiver_of(function)):
            yield from (("attribute", one.name, node.attr) for one in cls.mro)
            return
    yield "attribute", "", node.attr


def _targets(project: Project, module: Module, target: ast.AST) -> Iterator[Key]:
    """What a target, or the definition of a function, names; in a class body it is an attribute."""
    match target:
        case ast.Name(id=name):
            yield from _bound(project, module, target, name)
        case ast.FunctionDef(name=name):
            yield from _bound(project, module, target, name)
        case ast.Attribute():
            yield from _attribute(project, module, target)
        case ast.Subscript(value=inner) | ast.Starred(value=inner):
            yield from _targets(project, module, inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for one in parts:
                yield from _targets(project, module, one)


def _bound(project: Project, module: Module, node: ast.AST, name: str) -> Iterator[Key]:
    around = module.parents.above(node)
    owner = next((one for one in around if isinstance(one, (*FUNCTIONS, ast.ClassDef))), None)
    if isinstance(owner, ast.ClassDef):
        cls = project.by_node.get(id(owner))
        yield "attribute", cls.name if cls is not None and cls.linen else "", name
    else:
        yield _name(module, node, name)


def _arguments(project: Project, call: ast.Call, scope: Scope) -> Iterator[tuple[Key, ast.expr]]:
    """What a call gives parameters of the project's functions, and attributes of what it builds."""
    cls = class_named(project, call.func, scope)
    if cls is not None and cls.linen:
        for name, value in arguments_by_field(cls, call.args, call.keywords):
            yield from ((("attribute", one.name, name), value) for one in cls.mro)
        return
    is_method = project.resolve(call.func, scope) is None
    for function in functions_of(project, call.func, scope):
        names = parameters(function)[is_method:]
        arguments = zip([*names, *[""] * len(call.args)], call.args, strict=False)
        yield from ((_local(function, name), one) for name, one in arguments)
        yield from ((_local(function, k.arg or ""), k.value) for k in call.keywords)
    yield from ((("attribute", "", one.arg), one.value) for one in call.keywords if one.arg)


def _entries(module: Module) -> Iterator[tuple[Key, ast.expr]]:
    """The values of dicts by their key; "" where that is computed."""
    for node in module.nodes:
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = [*zip(keys, values, strict=True)]
            case (
                ast.DictComp(key=key, value=value)
                | ast.Assign(targets=[ast.Subscript(slice=key)], value=value)
            ):
                pairs = [(key, value)]
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                pairs = [(ast.Constant(one.arg), one.value) for one in keywords if one.arg]
            case _:
                continue
        for one, value in pairs:
            if one is not None:
                word = one.value if isinstance(one, ast.Constant) else ""
                yield ("entry", "", str(word)), value


def functions_of(project: Project, callee: ast.expr, scope: Scope) -> Sequence[ast.FunctionDef]:
    """The functions of the project that a call may be of; methods by their name, but ``__init__``."""
    symbol = project.resolve(callee, scope)
    found = project.function(symbol)
    if found is not None:
        return [found]
    match callee:
        case ast.Attribute(attr=name) if symbol is None and name not in CHANGES:
            return () if name.startswith("__") else _methods(project).get(name, ())
    return ()


@lru_cache(maxsize=4)  # every call asks
def _methods(project: Project) -> Mapping[str, Sequence[ast.FunctionDef]]:
    """The methods of all classes of the project by name."""
    found: dict[str, list[ast.FunctionDef]] = {}
    for module in project.modules.values():
        for cls in each(module.tree, ast.ClassDef):
            for one in cls.body:
                if isinstance(one, ast.FunctionDef):
                    found.setdefault(one.name, []).append(one)
    return found


def parameters(function: FunctionNode) -> list[str]:
    """The names that an argument may be given by, in the order of positions."""
    return [one.arg for one in named_parameters(function.args)]


def named(project: Project, node: ast.Name | ast.Attribute, scope: Scope) -> Iterator[Key]:
    """What a name may mean: the variable here or in the file it comes from, or an attribute."""
    module = scope.module
    if isinstance(node, ast.Name):
        yield _name(module, node, node.id)
    else:
        yield from _attribute(project, module, node)
    home, _, word = (project.resolve(node, scope) or "").rpartition(".")
    if home in project.modules:
        yield "name", home, word
