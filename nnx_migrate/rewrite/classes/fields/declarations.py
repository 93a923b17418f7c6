"""Defaults of fields that say more than a value: ``dataclasses.field(...)``, or code that makes one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.source.classes import Field
from nnx_migrate.source.growth import reachable
from nnx_migrate.source.modules import Scope
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

_FIELD_FUNCTIONS = frozenset(
    {"dataclasses.field", "flax.struct.field", "flax.linen.kw_only_dataclasses.field"}
)


def is_declaration(project: Project, one: Field) -> bool:
    """Whether a field's default is a call of ``field(...)`` itself."""
    made = one.node.value
    if not isinstance(made, ast.Call):
        return False
    return project.resolve(made.func, one.owner.scope) in _FIELD_FUNCTIONS


def may_make_declaration(project: Project, one: Field) -> bool:
    """Whether a default that is no declaration itself may be one by a name or function of the project.

    ``options: dict = empty_dict()``, where it is ``lambda: dataclasses.field(default_factory=dict)``.
    """
    default = one.node.value
    if default is None:
        return False
    parts: dict[int, tuple[ast.AST, Scope]] = {id(default): (default, one.owner.scope)}

    def used(key: int) -> Iterator[int]:
        for symbol in _symbols(project, *parts[key]):
            module, node = project.definition(symbol) or (None, None)
            if module is not None and node is not None and not isinstance(node, ast.ClassDef):
                parts[id(node)] = (node, Scope(module))
                yield id(node)

    reached = reachable(parts, used)
    return any(_FIELD_FUNCTIONS.intersection(_symbols(project, *parts[key])) for key in reached)


def _symbols(project: Project, node: ast.AST, scope: Scope) -> Iterator[str]:
    for one in walk(node):
        if isinstance(one, ast.Name | ast.Attribute):
            symbol = project.resolve(one, scope)
            if symbol is not None:
                yield symbol
