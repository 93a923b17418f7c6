"""Modules of a project that can name Linen or a Linen class: no other has a place to convert."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from nnx_migrate.source.modules import Module
from nnx_migrate.source.names import Assignment, Import
from nnx_migrate.source.project import Project
from nnx_migrate.source.stars import all_names

_HEADS = ("flax", "nnx_migrate")


@lru_cache(maxsize=2)  # every attempt of a run asks
def linen_modules(project: Project) -> frozenset[str]:
    """Names of the modules in which a dotted name can mean Linen or a Linen class of the project.

    Names are compared as words, so this is too many rather than too few. Code that gets a module
    as an argument names none.
    """
    search = _Search(project)
    while True:
        more = [one for one in project.modules.values() if search.is_new(one)]
        if not more:
            return frozenset(search.found)
        for module in more:
            search.add(module)


@lru_cache(maxsize=2)
def class_homes(project: Project) -> dict[str, set[str]]:
    """The modules that have each Linen class as a global: its own, and those that import it."""
    found = {name: {cls.module.name} for name, cls in project.linen.items()}
    stars: dict[str, list[str]] = {}  # the modules that import all of each
    renamed: set[tuple[str, str]] = set()
    for module in project.modules.values():
        for word, binding in module.table.items():
            if isinstance(binding, Import):
                name = project.canonical(binding.target)
                if name in found:
                    found[name].add(module.name)
                    if word != project.linen[name].node.name:
                        renamed.add((module.name, name))
        for star in module.stars:
            stars.setdefault(star, []).append(module.name)
    named = {star: all_names(project.modules[star]) for star in stars if star in project.modules}
    for name, homes in found.items():
        word = project.linen[name].node.name
        todo = [*homes]
        while todo:
            home = todo.pop()
            names = None if (home, name) in renamed else named.get(home)
            more = {*stars.get(home, ())} - homes if names is None or word in names else set()
            homes |= more
            todo += more
    return found


class _Search:
    def __init__(self, project: Project) -> None:
        self.found: set[str] = set()
        self.handed = {cls.node.name for cls in project.linen.values()}  # what others may import
        self.within = {part for name in project.modules for part in name.split(".")}
        self.above: set[str] = set()  # modules found, and the packages around them, by last name
        self.imports = {name: _imports(one.nodes) for name, one in project.modules.items()}

    def is_new(self, module: Module) -> bool:
        """Whether a module is one that was not known to be."""
        return module.name not in self.found and any(
            map(self.may_lead_to_linen, self.imports[module.name])
        )

    def add(self, module: Module) -> None:
        """Note a module and the names that others may take from it."""
        self.found.add(module.name)
        self.above.update(module.name.split("."))
        for name, binding in module.table.items():
            match binding:
                case Assignment(value=ast.Call() | ast.Name() | ast.Attribute()):
                    self.handed.add(name)
                case Import(target=target):
                    last = target.rpartition(".")[2]
                    if last in self.handed or _is_linen(target):
                        self.handed.add(name)

    def may_lead_to_linen(self, statement: ast.Import | ast.ImportFrom) -> bool:
        """Whether an import may bind what leads to Linen."""
        names = [one.name for one in statement.names]
        if isinstance(statement, ast.Import):
            parts = [name.split(".") for name in names]
            return any(one[0] in _HEADS or self.above & {*one} for one in parts)
        owner = statement.module or ""
        if not statement.level and owner.partition(".")[0] in _HEADS:
            return any(name == "*" or _is_linen(f"{owner}.{name}") for name in names)
        if not statement.level and owner.partition(".")[0] not in self.within:
            return False
        return any(name == "*" or name in self.handed or name in self.above for name in names)


def _imports(nodes: Iterable[ast.AST]) -> list[ast.Import | ast.ImportFrom]:
    return [one for one in nodes if isinstance(one, ast.Import | ast.ImportFrom)]


def _is_linen(symbol: str) -> bool:
    return symbol.split(".")[1:2] == ["linen"] and symbol.partition(".")[0] in _HEADS
