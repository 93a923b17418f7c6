"""Which names of a project may hold a module: ``head = nn.Dense(3)``, ``Config(f=nn.Dense(3))``.

An explicit class takes a field of functions for an activation, which has no variables and keeps the size of
its input. Whoever gives that field a module by way of such a name needs the class in its lazy form.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from nnx_migrate.rewrite.classes.fields.types import may_hold_arrays
from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.rewrite.classes.reading.evaluation import held_parts
from nnx_migrate.rewrite.outside.class_members import class_named, is_module
from nnx_migrate.source.bindings import CHANGES, bindings_below
from nnx_migrate.source.classes import ClassInfo, arguments_by_field
from nnx_migrate.source.modules import FUNCTIONS, Module, Scope
from nnx_migrate.source.names import FunctionNode, function_table
from nnx_migrate.source.other_values import is_name
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each

Key = tuple[str, str, str]  # the kind of name, whose it is, and the word; "name()": what it returns

_DATA = (ast.Constant, ast.Compare, ast.JoinedStr, ast.UnaryOp)
_SAME = frozenset(
    {"bind", "clone", "copy", "get", "pop", "setdefault"}
)  # give what their owner holds


def may_hold_module(project: Project, value: ast.expr, scope: Scope) -> bool:
    """Whether an expression may be a module, or hold one: ``HEADS["dense"]`` of a table of modules."""
    return any(one is None or one in _held(project) for one in _sources(project, value, scope))


def may_take_module(cls: ClassInfo, field: str) -> bool:
    """Whether a field's annotation leaves room for a module: ``Any``, ``Callable``; not ``int``."""
    found = (one.annotation for one in cls.fields if one.name == field)
    return any(may_hold_arrays(one) and not is_name(one, "float") for one in found)


def unseen_takers(
    project: Project, calls: Iterable[tuple[ast.Call, Scope]]
) -> Iterator[tuple[str | int, ast.Call]]:
    """Arguments, by keyword or position, that may give a module to a class out of sight.

    Example: ``make`` of ``build(Net, make=nn.Dense(3))`` with ``def build(cls, **fields)``.
    """
    for call, scope in calls:
        symbol = project.resolve(call.func, scope)
        functions = _functions(project, call.func, scope)
        if _is_known(call, scope) or class_named(project, call.func, scope) is not None:
            continue
        if symbol is not None and not functions and symbol != "dataclasses.replace":
            continue
        for keyword in call.keywords if _hand_on(functions, call) else ():
            if may_hold_module(project, keyword.value, scope):
                yield from ((name, call) for name in _words(project, keyword))
        for position, value in enumerate(call.args if symbol is None and not functions else ()):
            if may_hold_module(project, value, scope):
                yield "" if isinstance(value, ast.Starred) else position, call


def _hand_on(functions: Sequence[ast.FunctionDef], call: ast.Call) -> bool:
    """Whether what is called may hand keywords on that it does not name itself."""
    return not functions or any(one.args.kwarg is not None for one in functions)


def _words(project: Project, keyword: ast.keyword) -> list[str]:
    """The names that a keyword gives, "" for any; unpacked, those of all dicts that hold modules."""
    if keyword.arg is not None:
        return [keyword.arg]
    return sorted(word for kind, _, word in _held(project) if kind == "entry")


def _is_known(call: ast.Call, scope: Scope) -> bool:
    """Whether a call is one of a builtin, or keeps its arguments in a container."""
    match call.func:
        case ast.Name(id=name):
            return scope.lookup(name) is None and hasattr(builtins, name)
        case ast.Attribute(attr=name):
            return name in CHANGES
    return False


@lru_cache(maxsize=4)  # every field of every class asks
def _held(project: Project) -> frozenset[Key]:
    """The names that may hold a module, or are of functions that give one."""
    sources: dict[Key, set[Key | None]] = {}
    for module in project.modules.values():
        for key, value, scope in _flows(project, module):
            sources.setdefault(key, set()).update(_sources(project, value, scope))
    held: set[Key] = set()
    while more := {key for key, of in sources.items() if None in of or of & held} - held:
        held |= more
    return frozenset(held)


def _flows(project: Project, module: Module) -> Iterator[tuple[Key, ast.expr, Scope]]:
    """Every name of a module that is given a value, and the value."""
    scopes: dict[int, Scope] = {}

    def scope_of(node: ast.AST) -> Scope:
        around = next(iter(module.parents.functions(node)), module.tree)
        if id(around) not in scopes:
            scopes[id(around)] = Scope(module).around(node)
        return scopes[id(around)]

    for target, value in bindings_below(module.tree):
        if isinstance(value, ast.Lambda):
            inside = scope_of(value).enter(value)
            yield from (
                (_given_by(key), value.body, inside) for key in _targets(project, module, target)
            )
        elif isinstance(value, ast.expr) and not isinstance(value, _DATA):
            yield from ((key, value, scope_of(value)) for key in _targets(project, module, target))
    yield from ((key, value, scope_of(value)) for key, value in _entries(module))
    for function in each(module.tree, ast.FunctionDef):
        for one in each(function, ast.Return | ast.Yield):
            if one.value is not None and not isinstance(one.value, _DATA):
                for key in _targets(project, module, function):
                    yield _given_by(key), one.value, scope_of(one)
    for call in each(module.tree, ast.Call):
        if not all(
            isinstance(one, _DATA) for one in (*call.args, *(k.value for k in call.keywords))
        ):
            scope = scope_of(call)
            yield from ((key, one, scope) for key, one in _arguments(project, call, scope))


def _given_by(key: Key) -> Key:
    """What the function of that name returns."""
    return f"{key[0]}()", key[1], key[2]


def _name(module: Module, node: ast.AST, name: str) -> Key:
    """The variable that a name means at a node of a module: one of a function around it, or global."""
    for function in module.parents.functions(node):
        if name in function_table(function, module.package):
            return "name", str(id(function)), name
    return "name", module.name, name


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
    function = project.function(project.resolve(call.func, scope))
    if function is not None:
        names = _parameters(function)
        given = zip([*names, *[""] * len(call.args)], call.args, strict=False)
        yield from ((("name", str(id(function)), name), one) for name, one in given)
        yield from ((("name", str(id(function)), k.arg or ""), k.value) for k in call.keywords)
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


def _functions(project: Project, callee: ast.expr, scope: Scope) -> Sequence[ast.FunctionDef]:
    """The functions of the project that a call may be of; methods by their name."""
    symbol = project.resolve(callee, scope)
    found = project.function(symbol)
    if found is not None:
        return [found]
    if isinstance(callee, ast.Attribute) and symbol is None:
        return _methods(project).get(callee.attr, ())
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


def _parameters(function: FunctionNode) -> list[str]:
    """The names that an argument may be given by, in the order of positions."""
    spec = function.args
    return [one.arg for one in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


def _sources(project: Project, value: ast.AST, scope: Scope) -> Iterator[Key | None]:
    """The names whose modules an expression may be or hold; None where it builds one."""
    match value:
        case ast.Name() | ast.Attribute():
            yield from _named(project, value, scope)
        case (
            ast.Subscript(slice=ast.Constant(value=str() as word))
            | ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as word), *_])
        ):
            yield "entry", "", word
            return
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _SAME:
            yield from _sources(project, owner, scope)
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str() as name), *_]):
            yield "attribute", "", name
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords) if keywords:
            for one in keywords:
                yield from _sources(project, one.value, scope)
        case ast.Call(func=ast.Name() | ast.Attribute() as function):
            cls, symbol = class_named(project, function, scope), project.resolve(function, scope)
            if (cls is not None and cls.linen) or (symbol and is_module(symbol)):
                yield None
            yield from map(_given_by, _named(project, function, scope))
    for part in held_parts(value):
        yield from _sources(project, part, scope)


def _named(project: Project, node: ast.Name | ast.Attribute, scope: Scope) -> Iterator[Key]:
    """What a name may mean: the variable here or in the file it comes from, or an attribute."""
    module = scope.module
    if isinstance(node, ast.Name):
        yield _name(module, node, node.id)
    else:
        yield from _attribute(project, module, node)
    home, _, word = (project.resolve(node, scope) or "").rpartition(".")
    if home in project.modules:
        yield "name", home, word
