"""What a class consists of, as its conversion reads it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.compact.helpers import Helpers, helpers_of
from nnx_migrate.rewrite.classes.data import ConversionContext
from nnx_migrate.rewrite.classes.inheritance import BaseParts, inherited_by
from nnx_migrate.rewrite.classes.items import Item, ItemKind, find_items
from nnx_migrate.rewrite.classes.writing.construct import relax, without_applied_only
from nnx_migrate.rewrite.classes.writing.layout import Layout, layout_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk


@dataclass(frozen=True)
class ClassParts:
    """A class and what it builds.

    Attributes:
      sizes: of what needs any; a submodule that is only applied needs none.
      inferred: names of the sizes that callers have to give.
      context: what is decided about other classes.
      helpers: its helper methods that build.
      items: what else builds, by id of the call.
      base_parts: what its bases build.
      setup: the method of that name.
      compact: its compact method; of several, the one that builds.
    """

    project: Project
    cls: ClassInfo
    sizes: ClassSizes
    inferred: frozenset[str]
    context: ConversionContext
    layout: Layout
    helpers: Helpers
    items: Mapping[int, Item]
    base_parts: BaseParts
    setup: ast.FunctionDef | None
    compact: ast.FunctionDef | None


def class_parts(
    project: Project, cls: ClassInfo, sizes: ClassSizes, context: ConversionContext
) -> ClassParts:
    """Take a class apart.

    Raises:
      Refused: a call in it cannot be read, or its bases cannot be followed.
    """
    inferred = frozenset(one.name for one in sizes.new_arguments)
    needed = relax(without_applied_only(cls, sizes))
    helpers = helpers_of(project, cls, needed, context)
    items = find_items(cls, needed, helpers.inside)
    return ClassParts(
        project,
        cls,
        needed,
        inferred,
        context,
        layout_of(cls),
        helpers,
        items,
        inherited_by(project, cls, needed, context),
        cls.methods.get("setup"),
        _compact_method(project, cls, items),
    )


def _compact_method(
    project: Project, cls: ClassInfo, items: Mapping[int, Item]
) -> ast.FunctionDef | None:
    found = [one for one in cls.methods.values() if project.is_compact(cls, one)]
    building = [
        one
        for one in found
        if any(
            id(node) in items and items[id(node)].kind is not ItemKind.STREAM for node in walk(one)
        )
    ]
    return next(iter(building or found), None)
