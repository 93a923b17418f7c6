"""Fields that hold modules of any class: what a call of one, or of a method of one, gives nobody knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from nnx_migrate.sizes.annotations import annotated_symbol
from nnx_migrate.sizes.fields.constructor_arguments import fields_with_modules
from nnx_migrate.source.classes import ClassInfo, Field
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

_END_OF_NAME = re.compile(r"[.\[]")
_CALLABLES = frozenset({"typing.Callable", "collections.abc.Callable"})


def is_module(project: Project, cls: ClassInfo, text: str) -> bool:
    """Whether an expression is a field that holds, or may hold, a module of any class, or a method of it.

    ``act: Any = nn.relu`` shows what it is for, ``embed: Any`` does not, and some call may give either a
    module. ``self.config.act`` with ``config: Any`` is no method of one.

    Args:
      text: ``self.body``, ``self.body.features``, ``self.parts["body"]``.
    """
    name = _END_OF_NAME.split(text.removeprefix("self."), maxsplit=1)[0]
    found = cls.field(name)
    if found is None:
        return False
    if (cls.name, name) in fields_with_modules(project):
        return True
    if f"self.{name}[" in text:  # of a table without a default that is none of functions
        return found.default is None and not _CALLABLES & {*_symbols(project, found)}
    symbol = annotated_symbol(project, found)
    is_any = symbol == "typing.Any" and found.default is None
    return symbol == "flax.linen.Module" or (is_any and text == f"self.{name}")


def _symbols(project: Project, one: Field) -> Iterator[str | None]:
    """What the parts of an annotation name: ``dict`` and ``nn.Module`` of ``dict[str, nn.Module]``."""
    names = (node for node in walk(one.annotation) if isinstance(node, ast.Name | ast.Attribute))
    return (project.resolve(node, one.owner.scope) for node in names)
