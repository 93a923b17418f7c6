"""Values from outside that a class calls: ``def __call__(self, x, layer): return layer(x)``.

Lazy code may give it a module of its own there. The lazy form of an explicit class runs a first call
more than once, to find sizes and what the call makes; that module's variables would change each time.
A class inside a function reads such values of the function, too, and may build modules of their classes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.links import Links
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.growth import reachable
from nnx_migrate.source.names import Assignment, Opaque, parameter_names, root_name
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, given_values, walk

_CALLERS = frozenset(  # functions of jax that call what they are given
    {
        *("checkpoint", "cond", "custom_jvp", "custom_vjp", "eval_shape", "fori_loop", "grad"),
        *("jacfwd", "jacrev", "jit", "jvp", "linearize", "map", "partial", "pmap", "remat", "scan"),
        *("switch", "tree_map", "value_and_grad", "vjp", "vmap", "while_loop"),
    }
)


def called_parameters(project: Project, links: Links, cls: ClassInfo) -> Iterator[tuple[str, str]]:
    """Methods and the parameters that they, or what they hand these to, may call."""
    below = _below(links, cls.name)
    hands_on = any(
        one.name in below and any(_calls(project, one)) for one in project.linen.values()
    )
    for name, method in _methods(cls):
        called = {*_callees(project, cls, method)}
        called |= {*_called_of_function(project, cls, method)}
        called |= _handed_on(method, _values(method)) if hands_on else set()
        yield from ((name, parameter) for parameter in sorted(called))


def _methods(cls: ClassInfo) -> Iterator[tuple[str, ast.FunctionDef]]:
    found = {name: one for owner in reversed(cls.mro) for name, one in owner.methods.items()}
    yield from ((name, one) for name, one in found.items() if name not in ("setup", "__init__"))


def _calls(project: Project, cls: ClassInfo) -> Iterator[str]:
    for _, method in _methods(cls):
        yield from _callees(project, cls, method)


def _below(links: Links, name: str) -> set[str]:
    """Classes that a class builds, and that these build in turn."""
    return reachable(links.builds.get(name, ()), lambda one: links.builds.get(one, ()))


def _called_of_function(project: Project, cls: ClassInfo, method: ast.FunctionDef) -> Iterator[str]:
    """Values of the functions around a class that it calls, or hands to functions of the project."""
    tables = cls.scope.tables
    around = {
        name
        for table in tables
        for name, one in table.items()
        if isinstance(one, Opaque)
        or (isinstance(one, Assignment) and not isinstance(one.value, ast.Constant))
    } - {*parameter_names(method)}
    values = _parts(method, {name: name for name in around})
    scope = cls.scope.enter(method)
    for node in walk(method):
        if not isinstance(node, ast.Call):
            continue
        root = root_name(node.func)
        if root in values:
            yield values[root]
        elif project.function(project.resolve(node.func, scope)) is not None:
            yield from (values[name] for name in _argument_names(node) if name in values)


def _argument_names(call: ast.Call) -> list[str]:
    arguments = given_values(call)
    return [name for one in arguments for name in _names(one)]


def _values(method: ast.FunctionDef) -> dict[str, str]:
    """Names for a parameter or a part of it, and the parameter: ``for layer in layers``."""
    return _parts(method, {name: name for name in parameter_names(method)[1:]})


def _parts(method: ast.FunctionDef, names: dict[str, str]) -> dict[str, str]:
    """Names for the values that ``names`` has and for parts of them."""
    for node in walk(method):
        match node:
            case ast.For(target=target, iter=over) | ast.comprehension(target=target, iter=over):
                pass
            case ast.Assign(targets=[target], value=over) if root_name(over):
                pass
            case _:
                continue
        source = next((names[one] for one in _names(over) if one in names), None)
        if source is not None:
            names |= {name: source for name in _names(target) if name not in names}
    return names


def _names(node: ast.expr) -> list[str]:
    return [one.id for one in each(node, ast.Name)]


def _callees(project: Project, cls: ClassInfo, method: ast.FunctionDef) -> Iterator[str]:
    values = _values(method)
    scope = cls.scope.enter(method)
    for node in walk(method):
        match node:
            case (
                ast.Call(func=ast.Name(id=name))
                | ast.Call(func=ast.Subscript(value=ast.Name(id=name)))
            ) if name in values:
                yield values[name]
            case ast.Call(func=func, args=args):
                names = {i: one.id for i, one in enumerate(args) if isinstance(one, ast.Name)}
                names = {i: values[name] for i, name in names.items() if name in values}
                symbol = project.resolve(func, scope) if names else None
                yield from (names[i] for i in names.keys() & _called_positions(project, symbol))


def _called_positions(project: Project, symbol: str | None) -> set[int]:
    """Positions of the arguments that a function of jax or of the project calls."""
    if symbol is not None and symbol.rpartition(".")[2] in _CALLERS:
        return {*range(8)}
    function = project.function(symbol)
    if function is None:
        return set()
    called = {node.func.id for node in each(function, ast.Call) if isinstance(node.func, ast.Name)}
    return {i for i, name in enumerate(parameter_names(function)) if name in called}


def _handed_on(method: ast.FunctionDef, values: dict[str, str]) -> set[str]:
    """Parameters that calls are given beside their first argument, the array."""
    return {
        values[one.id]
        for node in each(method, ast.Call)
        for one in (*node.args[1:], *(keyword.value for keyword in node.keywords))
        if isinstance(one, ast.Name) and one.id in values
    }
