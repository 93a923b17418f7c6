"""Ways to a class that no name in the code shows, or only a name that may mean something else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TypeGuard

from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.outside.places import Place, Places, places_of
from nnx_migrate.rewrite.proof.accesses import SUBCLASSES, Access, accesses
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.source.attribute_uses import AttributeUses
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.linked import class_homes, linked_modules
from nnx_migrate.source.named_imports import TABLE, Declared, NamedImport, named_imports
from nnx_migrate.source.names import Definition, Import, Opaque, imported_names
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each
from nnx_migrate.source.written import written_names


@dataclass(frozen=True)
class Ways:
    """The ways to all classes of a project."""

    accesses: tuple[Access, ...]
    ambiguous: tuple[Access, ...]


@lru_cache(maxsize=1)  # every attempt of a run asks
def ways(project: Project) -> Ways:
    """Read the places of a project where code may get a class."""
    linked, uses = linked_modules(project), AttributeUses(project)
    by_place: list[Access] = []
    by_name: list[Access] = []
    for module in project.modules.values():
        if module.name in linked or SUBCLASSES in module.text:
            places = places_of(module, frozenset())
            by_place += accesses(project, places, uses)
            by_name += ambiguous_names(project, places) if module.name in linked else ()
    return Ways(tuple(by_place), tuple(by_name))


def ways_to(project: Project, cls: ClassInfo, attempt: Attempt) -> Iterator[Doubt]:
    """Places where code may get the class, but those where the attempt makes it lazy."""
    found = ways(project)
    for one in (*found.accesses, *found.ambiguous):
        handled = attempt.lazy.get(one.path, frozenset())
        if id(one.node) not in handled and one.may_be(cls, project):
            yield Doubt(one.path, one.line, one.reason)
    for taker in takers(project, cls):
        yield Doubt(taker.path, taker.line, taker.reason)


# Modules that code imports by names only the running program knows, and what it takes from them.
#
# ``import_module(path).create`` takes ``create`` and nothing else; ``getattr(import_module(path),
# name)`` may take any class. A module that is handed on may be asked for anything.

Names = frozenset[str] | None  # None: any
_TAKEN = "a module is imported by its name, and the class may be taken from it"


@dataclass(frozen=True)
class Taker:
    """A module that is imported by its name, and what the code around it takes from it.

    Attributes:
      names: what is taken; None where that may be any name.
      through: modules that are taken of a package on the way.
      deeper: what is taken of what a computed name gives, which may be a module of a package, too.
    """

    source: NamedImport
    names: Names
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

    @property
    def reason(self) -> str:
        """Why a class is in doubt, and what settles it."""
        if self.source.whole:
            return _TAKEN
        return f'{_TAKEN}; say which modules it imports: {TABLE} "{self.source.place}" = [...]'

    def may_reach(self, module: str, declared: Declared) -> bool:
        """Whether it may be a module, or a package from which the code takes that module."""
        if self.source.may_be(module, declared):
            return True
        package, _, name = module.rpartition(".")
        return bool(package) and name in self.through and self.may_reach(package, declared)

    def may_take(self, cls: ClassInfo, home: str, project: Project) -> bool:
        """Whether a class may be taken of a module that has it as a global."""
        declared = project.imports
        if _is_asked(cls, home, self.names, project) and self.may_reach(home, declared):
            return True
        packages = [*accumulate(home.split(".")[:-1], "{}.{}".format)]
        return _is_asked(cls, home, self.deeper, project) and any(
            self.may_reach(one, declared) for one in packages
        )


def takers(project: Project, cls: ClassInfo) -> Iterator[Taker]:
    """Imports in whose modules the class is, where its name may be asked for."""
    homes = class_homes(project)[cls.name]
    for one in _takers(project):
        if any(one.may_take(cls, home, project) for home in homes):
            yield one


def _is_asked(cls: ClassInfo, home: str, names: Names, project: Project) -> bool:
    """Whether one of the names is that of a class, or that of an import of it."""
    if names is None or cls.node.name in names:
        return True
    table = project.modules[home].table
    return any(
        isinstance(table.get(name), Import) and project.canonical(f"{home}.{name}") == cls.name
        for name in names
    )


@lru_cache(maxsize=1)  # every attempt of a run asks
def _takers(project: Project) -> tuple[Taker, ...]:
    taken = AttributeUses(project)
    found: list[Taker] = []
    for module in project.modules.values():
        imports = [*named_imports(module, project.modules.values() if project.is_whole else None)]
        evaluated = {id(one.value) for one in module.nodes if imports and _is_namespace(one)}
        for one in imports:
            if id(one.node) in evaluated:
                continue
            names = taken.of(module, one.node)
            if names is None and one.relative:
                # ``import_module(f".{name}", "package.models")``: a package has a table of what it holds.
                names = written_names(project)
            words = {word for word in taken.deeper if word is not None}
            deeper = None if None in taken.deeper else frozenset(words)
            found.append(Taker(one, names, frozenset(taken.through), deeper))
    return tuple(found)


def _is_namespace(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """``sys.modules[cls.__module__].__dict__``: where the text of a class is evaluated."""
    match node:
        case ast.Attribute(
            value=ast.Subscript(slice=ast.Attribute(attr="__module__")), attr="__dict__"
        ):
            return True
    return False


# ---- names that a class shares with something else: nobody knows which of them a use means
# ``try: from models import Net`` with ``except ImportError: Net = None`` binds ``Net`` twice, and so does
# ``from models import Net`` with ``Net = functools.partial(Net, 3)``.


def ambiguous_names(project: Project, places: Places) -> Iterator[Access]:
    """Every import and definition of a class, or of a module, whose name has another binding."""
    yield from _overwritten(project, places.module)
    for place in places:
        match place.node:
            case ast.Import() | ast.ImportFrom() as statement:
                for bound, target in imported_names(statement, places.module.package):
                    if bound != "*":
                        yield from _imported(project, place, bound, target)
            case ast.ClassDef() as node if not isinstance(place.frame, ast.ClassDef):
                cls = project.by_node.get(id(node))
                if (
                    cls is not None
                    and cls.linen
                    and isinstance(place.scope.lookup(node.name), Opaque)
                ):
                    yield _access(place, cls.module.name, node.name, node.name)


def _imported(project: Project, place: Place, bound: str, target: str) -> Iterator[Access]:
    is_member = isinstance(place.frame, ast.ClassDef)  # read as an attribute, by any name before it
    if isinstance(place.scope.lookup(bound), Import) and not is_member:
        return
    symbol = project.imported(target, place.scope.module)
    word = target.rpartition(".")[2]
    if symbol in project.linen:
        cls = project.linen[symbol]
        yield _access(place, cls.module.name, cls.node.name, bound)
    elif symbol in project.modules:
        yield _access(place, symbol, None, bound)
    elif project.split(symbol)[0] is not None or any(
        word == one.node.name for one in project.linen.values()
    ):
        yield _access(place, None, word, bound)  # through what nobody follows


def _overwritten(project: Project, module: Module) -> Iterator[Access]:
    """Classes that a star import brings, and whose name the file binds to something else."""
    for cls in project.linen.values() if module.stars else ():
        binding = module.table.get(cls.node.name)
        if binding is None or isinstance(binding, Definition) or _is_class(project, binding, cls):
            continue
        if class_homes(project)[cls.name].intersection(module.stars):
            name = cls.node.name
            node = next(one for one in each(module.tree, ast.ImportFrom))
            yield Access(node, module.path, cls.module.name, name, _reason(name))


def _is_class(project: Project, binding: object, cls: ClassInfo) -> bool:
    return isinstance(binding, Import) and project.canonical(binding.target) == cls.name


def _access(place: Place, module: str | None, word: str | None, bound: str) -> Access:
    return Access(place.node, place.scope.module.path, module, word, _reason(bound))


def _reason(name: str) -> str:
    return f"{name} may mean something else, too"
