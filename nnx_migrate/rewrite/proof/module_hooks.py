"""Names that a module's ``__getattr__`` gives (PEP 562): any class of that name may be what is meant.

After ``def __getattr__(name): return getattr(import_module("lib.late"), name)`` in a package, ``lib.Net`` is a
class that no binding of the package shows.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import lru_cache

from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.rewrite.proof.accesses import Access
from nnx_migrate.source.bindings import bound_names
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import walk

_HOOK = "__getattr__"


@lru_cache(maxsize=2)  # every module of a run asks
def _hook_modules(project: Project) -> frozenset[str]:
    """Modules that give names by a function."""
    return frozenset(name for name, one in project.modules.items() if _HOOK in one.table)


def hooked_names(project: Project, places: Places) -> Iterator[Access]:
    """Every place of a file that reads a name which such a module does not bind itself."""
    hooked = _hook_modules(project)
    for place in places if hooked else ():
        match place.node:
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) as node:
                home, word = _meant(project, place, node, hooked)
                if word is None or word.startswith("__"):
                    continue
                reason = f"{word} is what the {_HOOK} of {home} gives"
                for one in sorted(_words(project, home, word)):
                    yield Access(node, places.module.path, None, one, reason)


def _words(project: Project, home: str, word: str) -> frozenset[str]:
    """The names of the classes that a name may mean: that class, or one that the hook gives for it."""
    known = frozenset(one.node.name for one in project.linen.values())
    return frozenset({word}) if word in known else known & _names_in_text(project.modules[home])


@lru_cache(maxsize=64)
def _names_in_text(module: Module) -> frozenset[str]:
    """Names in the text of a module, also inside of strings, without those that it lists to hand on."""
    found: set[str] = set()
    for statement in module.tree.body:
        if "__all__" in bound_names(statement) or isinstance(
            statement, ast.Import | ast.ImportFrom
        ):
            continue
        for node in walk(statement):
            match node:
                case ast.Name(id=word) | ast.Attribute(attr=word):
                    found.add(word)
                case ast.Constant(value=str() as text) if len(text) < 200:
                    found.update(re.findall(r"\w+", text))
    return frozenset(found)


def _meant(
    project: Project, place: Place, node: ast.Name | ast.Attribute, hook_modules: frozenset[str]
) -> tuple[str, str | None]:
    """The module whose hook gives a name that is read, and the name there."""
    for symbol in project.meanings(node, place.scope):
        home, rest = project.split(symbol)
        if (
            home is not None
            and home.name in hook_modules
            and len(rest) == 1
            and rest[0] not in home.table
        ):
            return home.name, rest[0]
    if isinstance(node, ast.Name) and place.scope.lookup(node.id) is None:
        starred = hook_modules.intersection(project.stars.sources(place.scope.module))
        if starred and not hasattr(builtins, node.id):
            return min(starred), node.id
    return "", None
