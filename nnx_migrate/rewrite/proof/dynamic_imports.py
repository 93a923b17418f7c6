"""Modules that code imports by names only the running program knows, and what it takes from them.

``import_module(path).create`` takes ``create`` and nothing else; ``getattr(import_module(path),
name)`` may take any class. A module that is handed on may be asked for anything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeGuard

from nnx_migrate.rewrite.proof.attribute_uses import AttributeUses
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.linked import class_homes
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import walk

DYNAMIC = frozenset({"import_module", "__import__"})  # import a module by its name
TAKEN = "a module is imported by its name, and the class may be taken from it"


@dataclass(frozen=True)
class DynamicImport:
    """An expression for a module, and what the code around it takes from that module.

    Attributes:
      start: how the module's dotted name begins; "" where nothing is known of it.
      whole: whether ``start`` is the whole name.
      names: what is taken; None where that may be any name.
    """

    path: str
    node: ast.expr
    start: str
    whole: bool
    names: frozenset[str] | None

    def may_be(self, module: str) -> bool:
        """Whether it may be the module of that name; ``src.models`` may be imported as ``models``."""
        parts = module.split(".")
        tails = (".".join(parts[i:]) for i in range(len(parts)))
        return any(one == self.start if self.whole else one.startswith(self.start) for one in tails)


def takers(project: Project, cls: ClassInfo) -> Iterator[DynamicImport]:
    """Imports in whose modules the class is, where its name may be asked for."""
    homes = class_homes(project)[cls.name]
    for one in _loaded(project):
        asked = one.names is None or cls.node.name in one.names
        if asked and any(one.may_be(home) for home in homes):
            yield one


def name_starts(module: Module) -> Iterator[str]:
    """How names of modules begin that only the running program knows; "" where nothing is known."""
    yield from (name.start for _, name in _expressions(module) if not name.whole)


@lru_cache(maxsize=1)  # every attempt of a run asks
def _loaded(project: Project) -> tuple[DynamicImport, ...]:
    taken = AttributeUses(project)
    found: list[DynamicImport] = []
    for module in project.modules.values():
        expressions = [*_expressions(module)]
        evaluated = {id(one.value) for one in module.nodes if expressions and _is_namespace(one)}
        for node, name in expressions:
            if id(node) in evaluated:
                continue
            names = taken.of(module, node)
            if names is None and name.relative:
                names = _strings(project)
            found.append(DynamicImport(module.path, node, name.start, name.whole, names))
    return tuple(found)


def _is_namespace(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """``sys.modules[cls.__module__].__dict__``: where the text of a class is evaluated."""
    match node:
        case ast.Attribute(
            value=ast.Subscript(slice=ast.Attribute(attr="__module__")), attr="__dict__"
        ):
            return True
    return False


@lru_cache(maxsize=1)
def _strings(project: Project) -> frozenset[str]:
    """Names that the project writes as strings.

    A package that imports its own modules by a computed name (``import_module(f".{name}",
    "package.models")``) has a table of what they hold.
    """
    return frozenset(
        node.value
        for module in project.modules.values()
        for statement in module.tree.body
        if "__all__" not in bound_names(statement)
        for node in walk(statement)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.isidentifier()
    )


@dataclass(frozen=True)
class _Name:
    """What is known of the name of a module."""

    start: str
    whole: bool = False
    relative: bool = False  # to a package


def _expressions(module: Module) -> Iterator[tuple[ast.expr, _Name]]:
    """Modules that are imported by a name, or taken from those that are imported."""
    for node in module.nodes:
        match node:
            case ast.Subscript(value=ast.Attribute(attr="modules"), slice=name, ctx=ast.Load()):
                yield node, _name(name, [], module)
            case ast.Call(
                func=ast.Attribute(attr="get", value=ast.Attribute(attr="modules")), args=[name, *_]
            ):
                yield node, _name(name, [], module)
            case ast.Call(func=ast.Attribute(attr=word) | ast.Name(id=word), args=[name, *rest]):
                if word in DYNAMIC:
                    yield node, _name(name, rest, module)


def _name(node: ast.expr, rest: list[ast.expr], module: Module) -> _Name:
    """The name of a module that may be relative to the package behind it: ``..a`` to ``b.c``."""
    first = _start(node, module)
    package = _start(rest[0], module).start if rest else ""
    name = first.start.lstrip(".")
    if name == first.start:
        return first
    parts = package.split(".")
    up = len(first.start) - len(name) - 1
    start = ".".join([*parts[: len(parts) - up], name]) if package else name
    return _Name(start, first.whole, relative=True)


def _start(node: ast.expr, module: Module) -> _Name:
    match node:
        case ast.Constant(value=str() as text):
            return _Name(text, whole=True)
        case ast.JoinedStr(values=[first, *_]) | ast.BinOp(left=first, op=ast.Add()):
            return _Name(_start(first, module).start)
        case ast.FormattedValue(value=value):
            return _Name(_start(value, module).start)
        case ast.Name(id="__name__"):
            return _Name(module.name, whole=True)
        case ast.Name(id="__package__"):
            return _Name(module.package, whole=True)
    return _Name("")
