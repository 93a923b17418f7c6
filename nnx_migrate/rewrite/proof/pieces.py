"""The pieces that a project's code is read in: its top-level functions and classes, and the rest of each file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.source.facts import Fact
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each

Key = tuple[str, str]  # module, and the function or class of its top level; "" for the rest

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


def pieces(module: Module) -> Iterator[tuple[Key, ast.stmt]]:
    """The statements of a file's top level but its imports, in their order, each with its piece."""
    for one in module.tree.body:
        if not isinstance(one, _IMPORTS):
            yield (module.name, one.name if isinstance(one, DEFINITIONS) else ""), one


@Fact  # the graph asks, and what pieces do with tables
def import_renames(project: Project) -> Mapping[str, Mapping[str, str]]:
    """What names that imports give another name are called where they come from, by module."""
    return {name: _renames(module) for name, module in project.modules.items()}


def _renames(module: Module) -> dict[str, str]:
    return {
        alias.asname: alias.name.rpartition(".")[2]
        for node in each(module.tree, _IMPORTS)
        for alias in node.names
        if alias.asname
    }
