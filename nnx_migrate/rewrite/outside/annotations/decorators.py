"""What a decorator of the project may make of what it decorates."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.outside.annotations.uses import Anything, Uses
from nnx_migrate.source.names import Assignment, Definition, Import, Opaque, Several
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import walk

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COLLECTIONS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
_MOST = 500  # definitions that the code of one decorator may lead to


def made_by(uses: Uses, module: Module, decorator: ast.expr) -> Iterator[int]:
    """What a decorator of the project may give instead: something that its code, or code below, has.

    Raises:
      Anything: it is not known, or too much.
    """
    todo, done = [*_definitions(uses.project, uses.symbol(module, decorator))], set[int]()
    if not todo or not all(isinstance(node, _DEFINITIONS) for _, node in todo):
        raise Anything
    while todo:
        home, node = todo.pop()
        if id(node) in done:
            continue
        if len(done) > _MOST or isinstance(node, _COLLECTIONS):
            raise Anything
        done.add(id(node))
        if isinstance(node, _DEFINITIONS):
            yield id(node)
        for one in walk(node):
            if isinstance(one, ast.Name | ast.Attribute) and isinstance(one.ctx, ast.Load):
                todo += _definitions(uses.project, uses.symbol(home, one))


def _definitions(project: Project, symbol: str | None) -> Iterator[tuple[Module, ast.AST]]:
    """What may define a symbol; a package's ``from .one import one`` hides its module ``one``."""
    package, _, word = (symbol or "").rpartition(".")
    around = project.modules.get(package) if symbol in project.modules else None
    match around.table.get(word) if around is not None else None:
        case Import(target=target):
            symbol = target
    home, rest = project.split(project.canonical(symbol or ""))
    binding = home.table.get(rest[0]) if home is not None and rest else None
    for one in binding.bindings if isinstance(binding, Several) else (binding,):
        match one:
            case Definition(node=node) if home is not None:
                yield home, node
            case Assignment(value=value) if home is not None:
                yield home, value
            case Import(target=target) if home is not None and isinstance(binding, Several):
                if project.split(project.import_symbol(target, home))[0] is not None:
                    raise Anything  # one of the project's or another
            case Opaque():
                raise Anything
