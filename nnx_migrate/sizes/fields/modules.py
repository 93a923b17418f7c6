"""Fields that hold modules of any class: what a call of one, or of a method of one, gives nobody knows."""

from __future__ import annotations

from nnx_migrate.sizes.annotations import annotated_symbol
from nnx_migrate.sizes.fields.given import fields_with_modules
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project


def is_module(project: Project, cls: ClassInfo, text: str) -> bool:
    """Whether an expression is a field that holds, or may hold, a module of any class, or a method of it.

    ``act: Any = nn.relu`` shows what it is for, ``embed: Any`` does not, and some call may give either a
    module. ``self.config.act`` with ``config: Any`` is no method of one.

    Args:
      text: ``self.body``, ``self.body.features``.
    """
    name, _, method = text.removeprefix("self.").partition(".")
    found = next((one for one in cls.fields if one.name == name), None)
    if found is None:
        return False
    symbol = annotated_symbol(project, found)
    is_any = symbol == "typing.Any" and found.default is None and not method
    return (
        symbol == "flax.linen.Module" or is_any or (cls.name, name) in fields_with_modules(project)
    )
