"""What NNX does without: Linen's decorators, dataclass decorators, field statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.edit.statements import GONE
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.uses.references import Edits
from nnx_migrate.source.classes import ClassInfo, is_declared_only
from nnx_migrate.source.project import Project

_METHOD_DECORATORS = frozenset({"flax.linen.compact", "flax.linen.nowrap"})
DATACLASS = frozenset({"dataclasses.dataclass", "flax.struct.dataclass"})


def removed_decorators(project: Project, cls: ClassInfo) -> Iterator[ast.expr]:
    """Decorators of methods that go."""
    for method in cls.methods.values():
        for one in method.decorator_list:
            if project.resolve(one, cls.scope) in _METHOD_DECORATORS:
                yield one


def removals(project: Project, cls: ClassInfo) -> Edits:
    """Edits that take everything away that NNX does without."""
    edits: Edits = {id(one): GONE for one in removed_decorators(project, cls)}
    for one in cls.node.decorator_list:
        target = one.func if isinstance(one, ast.Call) else one
        if project.resolve(target, cls.scope) in DATACLASS:
            edits[id(one)] = GONE
    for statement in cls.node.body:
        if not isinstance(statement, ast.AnnAssign) or not _is_field(cls, statement):
            continue
        if not _replaces_method(cls, statement):
            edits[id(statement)] = GONE
    return edits


def _replaces_method(cls: ClassInfo, node: ast.AnnAssign) -> bool:
    """Whether a field stands for a method of a base, perhaps an abstract one: its default stays.

    Raises:
      Refused: the class has no attribute to put in the method's place.
    """
    name = node.target.id if isinstance(node.target, ast.Name) else ""
    if not any(name in one.methods for one in cls.mro[1:]):
        return False
    if not isinstance(node.value, ast.Constant):
        reason = f"the field {name!r} stands for a method of a base, and has no plain default"
        raise Refused(node, reason, "give one of them another name", "fields")
    return True


def _is_field(cls: ClassInfo, node: ast.AnnAssign) -> bool:
    if any(one.node is node for one in cls.fields):
        return True
    return ast.unparse(node.annotation).endswith("KW_ONLY") or is_declared_only(node)
