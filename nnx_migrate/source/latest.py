"""Names that several imports of a module bind one after the other: who reads them reads the last.

After ``from .gpt import Block`` and ``from .t5 import Block`` a package's ``Block`` is that of ``t5``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from nnx_migrate.source.modules import Module
from nnx_migrate.source.names import Import, Several, imported_names, table_of
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk

_IMPORTS = (ast.Import, ast.ImportFrom)


def latest_imports(modules: Mapping[str, Module]) -> dict[str, Module]:
    """The modules that bind names by several imports, with those names that mean their last.

    While a module runs, what stands between two such imports sees the earlier one: statements of
    its own, and modules that these imports run, if they take the name from it.
    """
    project = Project(dict(modules))  # one that nobody asks later, when these have been replaced
    found: dict[str, Module] = {}
    for module in modules.values():
        words = {word for word in _several(project, module) if _is_unread(module, word)}
        early = _run_by(project, module) if words else ()
        words_taken = {
            word for one in early for word in words if _takes(project, one, module, word)
        }
        if words - words_taken:
            found[module.name] = replace(module, latest=frozenset(words - words_taken))
    return found


def _several(project: Project, module: Module) -> Iterator[str]:
    """Names that only imports from the project bind, all of them at the top of a module."""
    table = {name: one for name, one in module.table.items() if isinstance(one, Several)}
    if not table:
        return
    inner = [one for one in module.tree.body if not isinstance(one, _IMPORTS)]
    others = {*table_of(inner, module.package)[0], *module.stores}
    others.update(*(one.names for one in module.nodes if isinstance(one, ast.Global)))
    for name, several in table.items():
        if name in others or f"{module.name}.{name}" in project.modules:
            continue  # importing a module of a package binds its name there, too
        if all(isinstance(one, Import) and _home(project, module, one) for one in several.bindings):
            yield name


def _home(project: Project, module: Module, binding: Import) -> Module | None:
    return project.split(project.beside(binding.target, module))[0]


def _is_unread(module: Module, word: str) -> bool:
    """Whether nothing between the first and the last import of a name reads it, or calls what may."""
    body = module.tree.body
    places = [at for at, one in enumerate(body) if word in _bound(one, module)]
    return not is_read_between(body[places[0] : places[-1]], word)


def is_read_between(statements: Iterable[ast.stmt], word: str) -> bool:
    """Whether statements that are no imports read a name, or call what may."""
    others = [one for one in statements if not isinstance(one, _IMPORTS)]
    return any(_may_read(node, word) for one in others for node in walk(one))


def _bound(statement: ast.stmt, module: Module) -> set[str]:
    if not isinstance(statement, _IMPORTS):
        return set()
    names = {bound for bound, _ in imported_names(statement, module.package)}
    return {*names, *module.shadowed_bindings} if "*" in names else names


def _may_read(node: ast.AST, word: str) -> bool:
    match node:
        case ast.Name(id=name):
            return name == word
        case ast.Call() | ast.With() | ast.For() | ast.AsyncWith() | ast.AsyncFor():
            return True
    return bool(getattr(node, "decorator_list", ()) or getattr(node, "bases", ()))


# ---- modules that run before a module is done


def _run_by(project: Project, module: Module) -> list[Module]:
    """The modules that a module's imports run, and all that stand in it if it is a package."""
    found = {module.name: module}
    inside = (one for name, one in project.modules.items() if name.startswith(f"{module.name}."))
    todo = [module, *inside]
    while todo:
        one = todo.pop()
        found[one.name] = one
        todo += [more for more in _modules_of_imports(project, one) if more.name not in found]
    return [one for one in found.values() if one is not module]


def _modules_of_imports(project: Project, module: Module) -> Iterator[Module]:
    """The modules of the project that a module's imports name, and the packages around these."""
    for statement in each(module.tree, _IMPORTS):
        owners = {target for _, target in _targets(project, module, statement)}
        if isinstance(statement, ast.Import):  # ``import a.b.c`` binds ``a``, and runs them all
            owners |= {project.beside(one.name, module) for one in statement.names}
        for owner in owners:
            parts = owner.split(".")
            names = (".".join(parts[:cut]) for cut in range(1, len(parts) + 1))
            yield from (project.modules[name] for name in names if name in project.modules)


def _takes(project: Project, other: Module, module: Module, word: str) -> bool:
    """Whether a module may take a name from another one."""
    is_read = any(isinstance(one, ast.Attribute) for one in other.by_word.get(word, ()))
    for statement in each(other.tree, _IMPORTS):
        for bound, target in _targets(project, other, statement):
            is_module = target == module.name or module.name.startswith(f"{target}.")
            if (is_module and (is_read or bound == "*")) or target == f"{module.name}.{word}":
                return True
    return False


def _targets(
    project: Project, module: Module, statement: ast.Import | ast.ImportFrom
) -> Iterator[tuple[str, str]]:
    for bound, target in imported_names(statement, module.package):
        yield bound, project.beside(target, module)
