"""Calls of a method on its own module, when they are all that a project does with its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.sizes.static_parameters import parameters_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, is_self, walk

RECEIVER = "self"


def calls_on_self(
    project: Project, cls: ClassInfo, name: str, homes: list[ast.FunctionDef]
) -> list[tuple[ast.Call, ast.FunctionDef]] | None:
    """Every call of a helper with the method it stands in; None when something else is done."""
    found = [
        (one, home)
        for home in homes
        for one in each(home, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == name and is_self(one.func.value)
    ]
    others = reads_of_others(project, cls, name)
    mentions = sum(
        isinstance(one, ast.Attribute) and one.attr == name and id(one) not in others
        for module in project.modules.values()
        if f".{name}" in module.text
        for one in module.nodes
    )
    return found if len(found) == mentions and not is_quoted(project, name) else None


def is_quoted(project: Project, name: str) -> bool:
    """Whether a name stands in quotes somewhere, as for ``getattr``."""
    return any(f'"{name}"' in m.text or f"'{name}'" in m.text for m in project.modules.values())


def reads_of_others(project: Project, cls: ClassInfo, name: str) -> frozenset[int]:
    """Ids of ``self.name`` in methods of other classes that have a method of that name themselves."""
    return frozenset(
        id(one)
        for other in project.classes.values()
        if other not in cls.mro and name in other.methods
        for method in other.methods.values()
        for one in _read_of_receiver(method, name)
    )


def _read_of_receiver(method: ast.FunctionDef, name: str) -> Iterator[ast.Attribute]:
    """Reads of ``name`` of the module that a plain method is called on."""
    nodes = [*walk(method)]
    receivers = [one for one in nodes if isinstance(one, ast.arg) and one.arg == RECEIVER]
    stored = [one for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    if parameters_of(method)[:1] != (RECEIVER,) or len(receivers) > 1 or any(map(is_self, stored)):
        return
    if any(ast.unparse(one) in ("staticmethod", "classmethod") for one in method.decorator_list):
        return
    for one in nodes:
        if isinstance(one, ast.Attribute) and one.attr == name and is_self(one.value):
            yield one
