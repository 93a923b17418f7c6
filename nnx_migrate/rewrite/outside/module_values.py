"""Expressions that may be a module, or what builds one: ``head`` after ``head = nn.Dense(3)``.

An explicit class takes a field of functions for an activation, which has no variables and keeps the size of
its input, and one of modules for explicit modules. Whoever may give it others needs the class in its lazy form.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto

from nnx_migrate.constructs import is_linen
from nnx_migrate.rewrite.classes.reading.annotations import may_hold_arrays
from nnx_migrate.rewrite.classes.reading.evaluation import held_parts
from nnx_migrate.rewrite.outside.class_members import class_named, is_module
from nnx_migrate.rewrite.outside.name_flow import (
    Key,
    decorator_links,
    flows,
    functions_of,
    named,
    parameters,
    result_key,
)
from nnx_migrate.source.bindings import CHANGES
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.growth import grown
from nnx_migrate.source.names import FunctionNode, defaults_of
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import is_name, is_none_literal, is_self, names_in, walk


class Kind(Enum):
    """What an expression is looked at for."""

    MODULE = auto()  # a module that is built
    MAKER = auto()  # that, or a class or function that builds one
    FUNCTION = auto()  # a function that builds one


_Flows = dict[Key, set[Key | None]]
_CALLED = result_key(("attribute", "", "__call__"))  # what objects of plain classes give
_SAME = frozenset(
    {"bind", "clone", "copy", "get", "pop", "setdefault"}
)  # give what their owner has


def may_hold(project: Project, value: ast.expr, scope: Scope, kind: Kind) -> bool:
    """Whether an expression may be of a kind, or hold what is: ``HEADS["dense"]`` of a table of modules."""
    holders = _holders(project, kind)
    return any(one is None or one in holders for one in _sources(project, value, scope, kind))


def may_take_module(cls: ClassInfo, field: str) -> bool:
    """Whether a field's annotation leaves room for a module: ``Any``, ``Callable``; not ``int``."""
    found = (one.annotation for one in cls.fields if one.name == field)
    return any(may_hold_arrays(one) and not _is_number(one) for one in found)


def _is_number(annotation: ast.expr) -> bool:
    """Whether a type is a float, or an optional one."""
    words = names_in(annotation)
    return "float" in words and words <= {"float", "int", "Optional", "Union", "typing"}


def unseen_takers(
    project: Project, calls: Iterable[tuple[ast.Call, Scope]], kinds: Collection[Kind]
) -> Iterator[tuple[Kind, str | int, ast.Call]]:
    """Arguments that may give what is of a kind to a class out of sight: by keyword or position, "" for any.

    Example: ``make`` of ``build(Net, make=nn.Dense(3))`` with ``def build(cls, **fields)``.
    """
    for call, scope in calls:
        if _is_known(project, call, scope):
            continue
        functions = functions_of(project, call.func, scope)
        handed_on = not functions or any(one.args.kwarg is not None for one in functions)
        names = {name for one in functions for name in parameters(one)}
        for kind in kinds:
            for keyword in call.keywords if handed_on else ():
                if keyword.arg not in names and may_hold(project, keyword.value, scope, kind):
                    yield from ((kind, name, call) for name in _words(project, keyword, kind))
            # A method that is handed on in an attribute is no class: ``state.apply_fn(params, x)``.
            is_named = kind is not Kind.MODULE and isinstance(call.func, ast.Name | ast.Attribute)
            is_class = not functions and (is_named or _may_build(project, call.func, scope))
            for position, value in enumerate(call.args if is_class else ()):
                if may_hold(project, value, scope, kind):
                    yield kind, "" if isinstance(value, ast.Starred) else position, call


def _may_build(project: Project, callee: ast.expr, scope: Scope) -> bool:
    """Whether what is called may be a class of modules: ``TABLE[name](3)``, not ``jax.grad(loss)(params)``."""
    match callee:
        case ast.Name() | ast.Attribute():
            holders = _holders(project, Kind.MAKER)
            sources = _sources(project, callee, scope, Kind.MAKER)
            return any(
                one is None or (one in holders and not one[0].endswith("()")) for one in sources
            )
        case ast.Call(func=function):
            symbol = project.resolve(function, scope)
            return symbol is None or project.split(symbol)[0] is not None or _wraps(symbol)
    return True


def _is_known(project: Project, call: ast.Call, scope: Scope) -> bool:
    """Whether a call is one of a class by its own name, a library or a builtin, or fills a container."""
    function = call.func
    symbol = project.resolve(function, scope)
    if class_named(project, function, scope) is not None:
        return True
    if symbol in project.linen:
        return False  # by an alias, which is edited, not the call
    if symbol is not None:
        found = project.definition(symbol)
        is_library = found is None and project.split(symbol)[0] is None
        return (is_library and symbol != "dataclasses.replace") or (
            found is not None and isinstance(found[1], ast.ClassDef)
        )
    match function:
        case ast.Name(id=name):
            return scope.lookup(name) is None and hasattr(builtins, name)
        case ast.Attribute(attr=name):
            return name in CHANGES
    return False


def _words(project: Project, keyword: ast.keyword, kind: Kind) -> list[str]:
    """The names that a keyword gives; unpacked, those of all dicts that hold what is of the kind."""
    if keyword.arg is not None:
        return [keyword.arg]
    return sorted(word for place, _, word in _holders(project, kind) if place == "entry")


def _holders(project: Project, kind: Kind) -> frozenset[Key]:
    """The names that may hold what is of a kind."""
    return held_functions(project) if kind is Kind.FUNCTION else held_modules(project)[kind]


@Fact  # every field of every class asks
def held_modules(project: Project) -> Mapping[Kind, frozenset[Key]]:
    """Those of modules, and those of modules or what makes them, from one look at what flows where."""
    return _held_names(project, (Kind.MODULE, Kind.MAKER), _annotated_fields(project))


@Fact
def held_functions(project: Project) -> frozenset[Key]:
    """Those of functions that build modules."""
    modules = held_modules(project)[Kind.MODULE]
    pairs = (
        pair for module in project.modules.values() for pair in decorator_links(project, module)
    )
    start = [parameter for parameter, name in pairs if result_key(name) in modules]
    return _held_names(project, (Kind.FUNCTION,), start)[Kind.FUNCTION]


def _held_names(
    project: Project, kinds: Sequence[Kind], start: Iterable[Key]
) -> Mapping[Kind, frozenset[Key]]:
    """By kind, the names that hold what is of it, those at the start among them."""
    every: dict[Kind, _Flows] = {kind: {} for kind in kinds}
    for module in project.modules.values():
        # Of an argument of a method, all functions of that name have a parameter.
        read: dict[int, dict[Kind, frozenset[Key | None]]] = {}
        for key, value, scope in flows(project, module):
            if id(value) not in read:
                found = {kind: frozenset(_sources(project, value, scope, kind)) for kind in kinds}
                read[id(value)] = found
            for kind, sources in read[id(value)].items():
                if sources:
                    every[kind].setdefault(key, set()).update(sources)
    known = frozenset(start)
    return {kind: _reachable(flow, known) for kind, flow in every.items()}


def _reachable(sources: _Flows, start: frozenset[Key]) -> frozenset[Key]:
    return grown(
        start, lambda held: (key for key, of in sources.items() if None in of or of & held)
    )


def _annotated_fields(project: Project) -> Iterator[Key]:
    """Fields that are annotated as modules."""
    for cls in project.linen.values():
        for one in cls.fields:
            words = (
                node for node in walk(one.annotation) if isinstance(node, ast.Name | ast.Attribute)
            )
            if any(_is_class(project, node, cls.scope) for node in words):
                yield "attribute", cls.name, one.name


def _is_class(project: Project, node: ast.expr, scope: Scope) -> bool:
    cls = class_named(project, node, scope)
    symbol = project.resolve(node, scope)
    return (cls is not None and cls.linen) or (symbol is not None and is_module(symbol))


def _sources(project: Project, value: ast.AST, scope: Scope, kind: Kind) -> Iterator[Key | None]:
    """The names that may hold what an expression may be or hold; None where it itself is of the kind."""
    match value:
        case ast.Name() | ast.Attribute():
            keys = [*named(project, value, scope)]
            yield from keys
            if kind is Kind.MAKER:
                yield from map(result_key, keys)
                if _is_class(project, value, scope):
                    yield None
            elif kind is Kind.FUNCTION and _builds(project, value, scope, keys):
                yield None
        case ast.Lambda(body=body) if kind is Kind.MAKER:
            yield from _sources(project, body, scope.enter(value), kind)
        case ast.Lambda(body=body) if kind is Kind.FUNCTION:
            inside = scope.enter(value)
            if may_hold(project, body, inside, Kind.MODULE) and not _is_like_class(
                project, value, body, inside
            ):
                yield None
        case (
            ast.Subscript(slice=ast.Constant(value=str() as word))
            | ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as word), *_])
        ):
            yield "entry", "", word
            return
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _SAME:
            yield from _sources(project, owner, scope, kind)
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str() as name), *_]):
            yield "attribute", "", name
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords) if keywords:
            for one in keywords:
                yield from _sources(project, one.value, scope, kind)
        case ast.Call(func=ast.Name() | ast.Attribute() as function):
            symbol = project.resolve(function, scope)
            if symbol in ("copy.copy", "copy.deepcopy") or (
                kind is not Kind.MODULE and _wraps(symbol)
            ):
                for inner in value.args[:1]:
                    yield from _sources(project, inner, scope, kind)
            if kind is not Kind.FUNCTION and _is_class(project, function, scope):
                yield None
            if is_self(function):
                yield _CALLED
            elif kind is Kind.FUNCTION and _has_makers(project, symbol):
                yield None
            yield from map(result_key, named(project, function, scope))
    for part in held_parts(value):
        yield from _sources(project, part, scope, kind)


def _has_makers(project: Project, symbol: str | None) -> bool:
    """Whether the objects of a class may be called to build modules."""
    found = project.definition(symbol) if symbol is not None else None
    is_class = found is not None and isinstance(found[1], ast.ClassDef)
    return is_class and _CALLED in held_modules(project)[Kind.MODULE]


def _builds(project: Project, value: ast.expr, scope: Scope, keys: Iterable[Key]) -> bool:
    """Whether what these names mean may be a function that builds modules, and not as their class does."""
    modules = held_modules(project)[Kind.MODULE]
    if not any(result_key(key) in modules for key in keys):
        return False
    symbol = project.resolve(value, scope)
    if symbol is not None and project.function(symbol) is None:
        return False  # a variable, which says itself what it holds
    match project.definition(symbol) if symbol is not None else None:
        case (Module() as home, ast.FunctionDef(decorator_list=[], body=[*_, last]) as function):
            lines = [one for one in function.body if not isinstance(one, ast.Expr)]
            if isinstance(last, ast.Return) and len(lines) == 1 and last.value is not None:
                inside = Scope(home).enter(function)
                return not _is_like_class(project, function, last.value, inside)
    return True


def _is_like_class(project: Project, function: FunctionNode, made: ast.expr, scope: Scope) -> bool:
    """Whether a function builds one module and no more, under the name that it is given or under none.

    ``lambda width, name=None: Block(width, name=name)``: called like ``Block``, it does what that does.
    """
    if not isinstance(made, ast.Call) or not _is_class(project, made.func, scope):
        return False
    values = [*made.args, *(one.value for one in made.keywords if one.arg != "name")]
    if any(may_hold(project, one, scope, Kind.MODULE) for one in values):
        return False
    names = [one.value for one in made.keywords if one.arg in ("name", None)]
    reads = [one for one in walk(made) if is_name(one, "name")]
    if "name" not in parameters(function):
        return not names
    default = defaults_of(function.args).get("name")
    return is_none_literal(default) and names == reads and len(names) == 1


def _wraps(symbol: str | None) -> bool:
    """Whether a function gives what builds as its argument does: ``partial``, ``nn.remat``."""
    return symbol == "functools.partial" or (symbol is not None and is_linen(symbol))
