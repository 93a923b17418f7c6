"""Which expressions in the methods of a class are its submodules."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.items import Item, ItemKind, own_nodes, receiver_of
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.source.classes import ClassInfo, is_linen_class
from nnx_migrate.source.project import Project


@dataclass(frozen=True)
class Children:
    """The submodules that a class holds.

    Args:
      attributes: those that ``setup`` and fields hold, and the symbol of each one's class.
      items: what the class builds.
    """

    project: Project
    attributes: Mapping[str, str | None]
    items: Mapping[int, Item]

    def holds(self, node: ast.expr, method: ast.FunctionDef) -> bool:
        """Whether ``node`` is a submodule."""
        return bool(self.classes(node, method))

    def has_own(self, node: ast.expr, method: ast.FunctionDef, name: str) -> bool:
        """Whether the submodule's class defines ``name`` itself, which shadows Linen's."""
        for symbol in self.classes(node, method):
            cls = self.project.linen.get(symbol or "")
            fields = {one.name for one in cls.fields} if cls is not None else set()
            if cls is not None and (cls.find(name) is not None or name in fields):
                return True
        return False

    def classes(self, node: ast.expr, method: ast.FunctionDef) -> list[str | None]:
        """Symbols of the classes that the submodule may have; empty when it may be none."""
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver_of(method):
                return [self.attributes[attr]] if attr in self.attributes else []
            case ast.Call():
                return self._built(node)
            case ast.Name(id=name):
                return self._local(name, method)
        return []

    def _built(self, node: ast.expr) -> list[str | None]:
        item = self.items.get(id(node))
        if item is None or item.kind is not ItemKind.SITE or item.is_in_scope:
            return []
        return [item.site.symbol if item.site is not None else None]

    def _local(self, name: str, method: ast.FunctionDef) -> list[str | None]:
        """What a name holds that only ever holds submodules."""
        stores = 0
        found: list[str | None] = []
        for node in own_nodes(method):
            match node:
                case ast.Name(id=stored, ctx=ast.Store()) if stored == name:
                    stores += 1
                case ast.Assign(targets=[ast.Name(id=stored)], value=value) if stored == name:
                    found += self._built(value)
        return found if len(found) == stores else []


def children_of(
    project: Project, cls: ClassInfo, attributes: list[Attribute], items: Mapping[int, Item]
) -> Children:
    """The submodules of ``cls``."""
    held: dict[str, str | None] = {}
    for field in cls.fields:
        annotation = field.node.annotation
        symbol = project.resolve(annotation, field.owner.scope)
        if symbol in project.linen or symbol == "flax.linen.Module" or is_linen_class(symbol):
            held[field.name] = symbol
    for one in attributes:
        item = items.get(id(one.value))
        if one.kind is Kind.SUBMODULE:
            held[one.name] = item.site.symbol if item is not None and item.site else None
    return Children(project, held, items)
