"""Modules that code imports by names only the running program knows, and what it takes from them.

``import_module(path).create`` takes ``create`` and nothing else; ``getattr(import_module(path),
name)`` may take any class. A module that is handed on may be asked for anything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TypeGuard

from nnx_migrate.source.attribute_uses import Asked, AttributeUses, attribute_uses
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.linen_modules import class_homes
from nnx_migrate.source.named_imports import (
    CLASS_GIVERS,
    TABLE,
    Declared,
    NamedImport,
    named_imports,
)
from nnx_migrate.source.names import Import
from nnx_migrate.source.project import Project
from nnx_migrate.source.string_names import string_names

Names = frozenset[str] | None  # None: any
Handled = Mapping[str, frozenset[int]]  # ids of nodes, by file
NOWHERE: Handled = {}
_OWN_NNX = re.compile(r"\bnnx\b")
_TAKEN = "a module is imported by its name, and the class may be taken from it"


@dataclass(frozen=True)
class Taker:
    """A module that is imported by its name, and what the code around it takes from it.

    Attributes:
      names: what is taken; None where that may be any name.
      besides: what is taken of it in other ways than by ``lookups``.
      lookups: calls that take a name of it which the code computes, or that give such a class.
      through: modules that are taken of a package on the way.
      deeper: what is taken of what a computed name gives, which may be a module of a package, too.
    """

    source: NamedImport
    names: Names
    besides: Names
    lookups: tuple[Asked, ...] = ()
    through: frozenset[str] = frozenset()
    deeper: Names = frozenset()

    @property
    def path(self) -> str:
        """The file it stands in."""
        return self.source.module.path

    @property
    def line(self) -> int:
        """The line it stands on."""
        return self.source.node.lineno

    def may_reach(self, module: str, declaration: Declared) -> bool:
        """Whether it may be a module, or a package from which the code takes that module."""
        if self.source.may_be(module, declaration):
            return True
        package, _, name = module.rpartition(".")
        return bool(package) and name in self.through and self.may_reach(package, declaration)

    def is_handled(self, handled: Handled) -> bool:
        """Whether all computed names are asked for where an explicit class becomes lazy."""
        return all(id(call) in handled.get(module.path, ()) for module, call in self.lookups)

    def may_take(self, cls: ClassInfo, home: str, project: Project, names: Names) -> bool:
        """Whether a class may be taken, by one of the names, of a module that has it as a global."""
        declared = project.imports
        if _is_asked(cls, home, names, project) and self.may_reach(home, declared):
            return True
        packages = [*accumulate(home.split(".")[:-1], "{}.{}".format)]
        return _is_asked(cls, home, self.deeper, project) and any(
            self.may_reach(one, declared) for one in packages
        )


def doubt_of(found: Sequence[Taker]) -> tuple[Taker, str]:
    """The import to look at, of some that may take a class, and why that is in doubt: what settles all of them."""
    for one in found:
        if one.source.whole:
            return one, _TAKEN  # nothing can be said of it
    first = found[0]
    giver = first.source.giver
    why = (
        _TAKEN
        if giver is None
        else f"{giver} gives what a name leads to, and the class may be that"
    )
    places = dict.fromkeys(one.source.place for one in found)
    settings = ", ".join(f'"{one}" = [...]' for one in places)
    which = "it imports" if len(places) == 1 else "each of these imports"
    return first, f"{why}; say which modules {which}: {TABLE} {settings}"


def takers(project: Project, cls: ClassInfo, handled: Handled = NOWHERE) -> Iterator[Taker]:
    """Imports in whose modules the class is, where its name may be asked for.

    Args:
      handled: ids of calls that give its lazy form, by file.
    """
    homes = class_homes(project)[cls.name]
    for one in _takers(project):
        names = one.besides if one.is_handled(handled) else one.names
        if any(one.may_take(cls, home, project, names) for home in homes):
            yield one


@lru_cache(maxsize=1)  # every attempt of a run asks
def asking_calls(project: Project) -> Mapping[int, tuple[str, ast.Call, tuple[Taker, ...]]]:
    """Calls that may give any class of a module that is imported by its name, with their file.

    None where the project has NNX modules of its own: nobody could tell those from explicit classes.
    """
    found: dict[int, tuple[str, ast.Call, tuple[Taker, ...]]] = {}
    if any(_OWN_NNX.search(one.text) for one in project.modules.values()):
        return found
    for taker in _takers(project):
        for module, call in taker.lookups:
            before = found[id(call)][2] if id(call) in found else ()
            found[id(call)] = (module.name, call, (*before, taker))
    return found


def _is_asked(cls: ClassInfo, home: str, names: Names, project: Project) -> bool:
    """Whether one of the names is that of a class, or that of an import of it."""
    if names is None or cls.node.name in names:
        return True
    return not names.isdisjoint(_imported_as(project).get((home, cls.name), ()))


@lru_cache(maxsize=1)
def _imported_as(project: Project) -> Mapping[tuple[str, str], set[str]]:
    """The names under which a module imports a Linen class, by both."""
    found: dict[tuple[str, str], set[str]] = {}
    for module in project.modules.values():
        for word, binding in module.table.items():
            if isinstance(binding, Import):
                name = project.canonical(f"{module.name}.{word}")
                if name in project.linen:
                    found.setdefault((module.name, name), set()).add(word)
    return found


@lru_cache(maxsize=1)
def imports_by_name(project: Project) -> Mapping[str, tuple[NamedImport, ...]]:
    """What each module imports by a name, by the module's own."""
    modules = project.modules.values() if project.is_whole else None
    return {one.name: (*named_imports(one, modules),) for one in project.modules.values()}


@lru_cache(maxsize=1)  # every attempt of a run asks
def _takers(project: Project) -> tuple[Taker, ...]:
    uses = attribute_uses(project)
    found: list[Taker] = []
    for module in project.modules.values():
        imports = imports_by_name(project)[module.name]
        evaluated = {id(one.value) for one in module.nodes if imports and _is_namespace(one)}
        for one in imports:
            if id(one.node) in evaluated:
                continue
            names = uses.of(module, one.node) if one.giver is None else None
            through, at_depth = uses.through, uses.deeper
            besides, lookups = _besides(uses, one, names)
            through, at_depth = through | uses.through, at_depth | uses.deeper
            if one.relative:
                # ``import_module(f".{name}", "package.models")``: a package has a table of what it holds.
                written = string_names(project)
                names, besides = (written if it is None else it for it in (names, besides))
            words = {word for word in at_depth if word is not None}
            deeper = None if None in at_depth else frozenset(words)
            found.append(Taker(one, names, besides, lookups, frozenset(through), deeper))
    return tuple(found)


def _besides(
    uses: AttributeUses, source: NamedImport, names: Names
) -> tuple[Names, tuple[Asked, ...]]:
    """What is taken of a module in other ways than by computed names, and the calls with those."""
    module = source.module
    call = module.parents.of(source.node)
    if source.giver in CLASS_GIVERS and isinstance(call, ast.Call) and call.func is source.node:
        return frozenset(), ((module, call),)
    if source.giver is not None or names == frozenset():
        return names, ()
    besides = uses.besides(module, source.node)
    return besides, tuple(uses.asked)


def _is_namespace(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """``sys.modules[cls.__module__].__dict__``: where the text of a class is evaluated."""
    match node:
        case ast.Attribute(
            value=ast.Subscript(slice=ast.Attribute(attr="__module__")), attr="__dict__"
        ):
            return True
    return False
