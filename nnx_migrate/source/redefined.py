"""Names that a function binds by several class statements: which of them each use means.

The statements stand directly in the function's body and nothing else binds the name, so while one
other statement of that body runs the name means the nearest class above it. Code that runs later (a
method, a lambda, a generator expression) reads what the name means then: after the last class
statement that one; before it, only what a method of a class reads that is used up before the next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.source.bindings import names_bound_at
from nnx_migrate.source.walking import walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LATER = (ast.Lambda, ast.GeneratorExp, ast.FunctionDef, ast.AsyncFunctionDef)
_LAZY_FIELDS = ("annotation", "returns", "type_params")  # some versions and imports delay these
_RUNS = ("apply", "init", "init_with_output")  # run a module and keep nothing of it
_GIVE_THE_MODULE = ("method", "capture_intermediates", None)  # their functions may keep it
_OF_SELF = ("param", "variable", "make_rng", "sow")  # methods that keep nothing of the module
_NAMES_OF_CODE = ("locals", "vars", "eval", "exec")  # read names that do not stand there
_NAMES_OF_SELF = ("super", "__class__")


@dataclass(frozen=True)
class Redefined:
    """A name that several class statements of one function bind.

    ``uses`` says by ``id`` of a ``Name`` node which class it means, and holds every use. It is true if
    each of ``assumes`` is a plain module: its only base is ``flax.linen.Module`` and ``nn.compact`` is all
    that decorates its methods.
    """

    definitions: tuple[ast.ClassDef, ...]
    uses: Mapping[int, ast.ClassDef]
    assumes: tuple[ast.ClassDef, ...] = ()


def redefined_classes(function: ast.AST) -> dict[str, Redefined]:
    """The names of a function that are bound by classes alone, more than once, and plainly used."""
    if not isinstance(function, _Function):
        return {}
    found: dict[str, list[tuple[int, ast.ClassDef]]] = {}
    for index, statement in enumerate(function.body):
        if isinstance(statement, ast.ClassDef):
            found.setdefault(statement.name, []).append((index, statement))
    several = {name: classes for name, classes in found.items() if len(classes) > 1}
    if not several or any(_is_dynamic(node) for node in walk(function)):
        return {}
    uses = {name: _uses(function, name, dict(classes)) for name, classes in several.items()}
    return {name: one for name, one in uses.items() if one is not None}


def _is_dynamic(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in _NAMES_OF_CODE


def _uses(function: _Function, name: str, classes: Mapping[int, ast.ClassDef]) -> Redefined | None:
    nodes = {id(one) for one in classes.values()}
    if any(_binds(node, name) for node in walk(function) if id(node) not in nodes):
        return None
    uses: dict[int, ast.ClassDef] = {}
    assumes: list[ast.ClassDef] = []
    for index, statement in enumerate(function.body):
        for mention in mentions(statement, name):
            place = _meant(function, name, classes, index, mention)
            if place is None:
                return None
            uses[id(mention.node)] = classes[place]
            if mention.later and place != max(classes):
                assert isinstance(statement, ast.ClassDef)
                assumes.append(statement)
    outside = [*function.decorator_list, function.args, *filter(None, [function.returns])]
    if any(mention for one in outside for mention in mentions(one, name)):
        return None  # another variable of that name
    return Redefined(tuple(classes.values()), uses, tuple(assumes))


def _binds(node: ast.AST, name: str) -> bool:
    declared = getattr(node, "names", ()) if isinstance(node, ast.Global | ast.Nonlocal) else ()
    return name in names_bound_at(node) or name in declared or getattr(node, "name", None) == name


@dataclass(frozen=True)
class Mention:
    """A load of a name; ``later`` when the code around it runs at an unknown later time."""

    node: ast.Name
    later: bool


def mentions(tree: ast.AST, name: str, *, later: bool = False) -> Iterator[Mention]:
    """Every load of a name below ``tree``."""
    if isinstance(tree, ast.Name):
        if tree.id == name:
            yield Mention(tree, later)
        return
    for field, value in ast.iter_fields(tree):
        is_body = isinstance(tree, _LATER) and (
            field == "body" or isinstance(tree, ast.GeneratorExp)
        )
        lazy = later or is_body or field in _LAZY_FIELDS or type(tree).__name__ == "TypeAlias"
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from mentions(child, name, later=lazy)


def _meant(
    function: _Function,
    name: str,
    classes: Mapping[int, ast.ClassDef],
    index: int,
    mention: Mention,
) -> int | None:
    """Index of the class statement that a mention in statement ``index`` means; None if unsure."""
    above = [one for one in classes if one < index]
    if not above or (mention.later and index in classes):
        return None
    below = [one for one in classes if one > index]
    if mention.later and below and not _is_used_up(function, index, below[0], name):
        return None
    return above[-1]


def _is_used_up(function: _Function, index: int, end: int, name: str) -> bool:
    """Whether the methods that statement ``index`` defines run before statement ``end`` alone."""
    cls = function.body[index]
    if not isinstance(cls, ast.ClassDef) or cls.decorator_list or cls.keywords:
        return False
    own = {i: one for i, one in enumerate(function.body) if _defines(one, cls.name)}
    nodes = {id(one) for one in own.values()}
    if any(_binds(node, cls.name) for node in walk(function) if id(node) not in nodes):
        return False
    following = next((one for one in own if one > index), len(function.body))
    for place, statement in enumerate(function.body):
        for mention in mentions(statement, cls.name):
            may_mean_it = place <= max(own) if mention.later else index < place <= following
            may_mean_it = may_mean_it or (mention.later and index == max(own))
            is_run = not mention.later and place < end and _is_run(statement, mention.node)
            if may_mean_it and not is_run:
                return False
    return _keeps_nothing(cls, name)


def _defines(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.ClassDef) and statement.name == name


def _is_run(statement: ast.stmt, node: ast.Name) -> bool:
    """Whether a class is named only to run a new instance: ``Model(3).apply(variables, x)``."""
    for call in walk(statement):
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name() as built), attr=attr),
                keywords=keywords,
            ) if built is node:
                return attr in _RUNS and not {k.arg for k in keywords} & {*_GIVE_THE_MODULE}
    return False


def _keeps_nothing(cls: ast.ClassDef, name: str) -> bool:
    """Whether no method of a class outlives its call, nor lets go of the module."""
    methods = [one for one in cls.body if isinstance(one, ast.FunctionDef)]
    if any(
        mention.later for one in cls.body if one not in methods for mention in mentions(one, name)
    ):
        return False
    fields = frozenset(
        one.target.id
        for one in cls.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    )
    return all(_ends_with_its_call(one, fields) for one in methods)


def _ends_with_its_call(method: ast.FunctionDef, fields: frozenset[str]) -> bool:
    if not method.args.args or method.args.posonlyargs:
        return False
    receiver = method.args.args[0].arg
    nodes = [node for statement in method.body for node in walk(statement)]
    if any(isinstance(node, (*_LATER, ast.ClassDef, ast.Yield, ast.YieldFrom)) for node in nodes):
        return False
    held = {id(one) for node in nodes for one in _kept_inside(node, fields)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    known = all(one.id != receiver or id(one) in held for one in names)
    return known and not any(one.id in _NAMES_OF_SELF for one in names)


def _kept_inside(node: ast.AST, fields: frozenset[str]) -> Iterator[ast.Name]:
    """Names of a module where only a field of it is read, or a method called that keeps nothing."""
    match node:
        case ast.Attribute(value=ast.Name() as name, attr=attr) if attr in fields:
            yield name
        case ast.Call(func=ast.Attribute(value=ast.Name() as name, attr=attr)) if attr in _OF_SELF:
            yield name
