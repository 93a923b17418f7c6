"""Names that a class shares with something else: nobody knows which of them a use means.

``try: from models import Net`` with ``except ImportError: Net = None`` binds ``Net`` twice, and so does
``from models import Net`` with ``Net = functools.partial(Net, 3)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.rewrite.proof.accesses import Access
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.linen_modules import class_homes
from nnx_migrate.source.names import Definition, Import, Opaque, imported_names
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each


def ambiguous_names(project: Project, places: Places) -> Iterator[Access]:
    """Every import and definition of a class, or of a module, whose name has another binding."""
    yield from _overwritten(project, places.module)
    for place in places:
        match place.node:
            case ast.Import() | ast.ImportFrom() as statement:
                for bound, target in imported_names(statement, places.module.package):
                    if bound != "*":
                        yield from _import_accesses(project, place, bound, target)
            case ast.ClassDef() as node if not isinstance(place.frame, ast.ClassDef):
                cls = project.by_node.get(id(node))
                if (
                    cls is not None
                    and cls.linen
                    and isinstance(place.scope.lookup(node.name), Opaque)
                ):
                    yield _access(place, cls.module.name, node.name, node.name)


def _import_accesses(project: Project, place: Place, bound: str, target: str) -> Iterator[Access]:
    is_member = isinstance(place.frame, ast.ClassDef)  # read as an attribute, by any name before it
    if isinstance(place.scope.lookup(bound), Import) and not is_member:
        return
    symbol = project.import_symbol(target, place.scope.module)
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
