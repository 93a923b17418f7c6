"""What is said about constructor calls and call sites."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.rewrite.outside.sites import Site
from nnx_migrate.source.classes import ClassInfo

RULE = "call_site"
NEW_VALUES = "nnm.build gives the parameters Linen's values for the same key"


def note_init(draft: Draft, site: Site) -> None:
    """Remark and imports of an ``init`` that is rewritten."""
    draft.note(site.call, RULE, NEW_VALUES, "call_site")
    draft.imports.add("nnm")


def constructor_message(cls: ClassInfo, wanted: Iterable[SizeArgument]) -> str:
    """Which keyword arguments a constructor call lacks."""
    names = [f"{one.name}=" for one in wanted if not one.optional]
    return f"{cls.name} is an NNX module now and needs {', '.join([*names, 'rngs='])}"


def lacking(call: ast.Call, cls: ClassInfo, context: OutsideContext) -> tuple[SizeArgument, ...]:
    """The size arguments of ``cls`` that a constructor call does not pass."""
    given = {one.arg for one in call.keywords}
    wanted = context.new_arguments.get(cls.name, ())
    return tuple(one for one in wanted if one.name not in given)
