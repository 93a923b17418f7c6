"""Which expressions in the methods of a class are its submodules."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from nnx_migrate.constructs import layer_of
from nnx_migrate.constructs.common.rules import Layer
from nnx_migrate.rewrite.classes.items import Item, ItemKind, own_nodes, receiver_of
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.rewrite.classes.reading.evaluation import held_parts
from nnx_migrate.source.bindings import bindings_below, names_bound_at, target_names
from nnx_migrate.source.classes import ClassInfo, is_linen_class
from nnx_migrate.source.growth import grown
from nnx_migrate.source.project import Project


@dataclass(frozen=True)
class Children:
    """The submodules that a class holds.

    Args:
      attributes: those that ``setup`` and fields hold, and the symbol of each one's class.
      items: what the class builds.
      lists: attributes that hold several.
    """

    project: Project
    attributes: Mapping[str, str | None]
    items: Mapping[int, Item]
    lists: frozenset[str] = frozenset()

    def holds(self, node: ast.expr, method: ast.FunctionDef) -> bool:
        """Whether ``node`` is a submodule."""
        return bool(self.classes(node, method))

    def has_own(self, node: ast.expr, method: ast.FunctionDef, name: str) -> bool:
        """Whether the submodule's class defines ``name`` itself, which shadows Linen's."""
        return any(self._has(symbol, name) for symbol in self.classes(node, method))

    def defines(self, name: str) -> bool:
        """Whether the class of a submodule that the class builds defines ``name`` itself."""
        sites = (one.site for one in self.items.values() if one.site is not None)
        return any(self._has(one.symbol, name) for one in sites)

    def _has(self, symbol: str | None, name: str) -> bool:
        cls = self.project.linen.get(symbol or "")
        return cls is not None and cls.has(name)

    def classes(self, node: ast.expr, method: ast.FunctionDef) -> list[str | None]:
        """Symbols of the classes that the submodule may have; empty when it may be none."""
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver_of(method):
                return [self.attributes[attr]] if attr in self.attributes else []
            case ast.Call():
                return self._attributes_of(node)
            case ast.Name(id=name):
                return self._local(name, method)
        return []

    @cached_property
    def layers(self) -> list[Layer]:
        """The built-in layers among what the class builds."""
        sites = (one.site for one in self.items.values() if one.site is not None)
        found = (layer_of(one.symbol) for one in sites)
        return [one for one in found if one is not None]

    def may_hold(self, node: ast.AST, method: ast.FunctionDef) -> bool:
        """Whether ``node`` may be a submodule, or several: ``self.layers[0]``, a loop's ``layer``."""
        return self._is_held(node, receiver_of(method), self._names(method))

    def _names(self, method: ast.FunctionDef) -> frozenset[str]:
        """Local names that only ever hold submodules, or lists of such."""
        receiver, pairs = receiver_of(method), [*bindings_below(method)]
        stores = Counter(name for node in own_nodes(method) for name in names_bound_at(node))

        def held(names: frozenset[str]) -> Iterator[str]:
            found = Counter(
                name
                for target, value in pairs
                if self._is_held(value, receiver, names)
                for name in target_names(target)
            )
            return (name for name, count in found.items() if count == stores[name])

        return grown((), held)

    def _is_held(self, node: ast.AST, receiver: str, names: frozenset[str]) -> bool:
        match node:
            case ast.Name(id=name):
                return name in names
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                return attr in self.attributes or attr in self.lists
            case ast.Call() if self._attributes_of(node):
                return True
        return any(self._is_held(one, receiver, names) for one in held_parts(node))

    def _attributes_of(self, node: ast.AST) -> list[str | None]:
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
                    found += self._attributes_of(value)
        return found if len(found) == stores else []


def children_of(
    project: Project, cls: ClassInfo, attributes: Sequence[Attribute], items: Mapping[int, Item]
) -> Children:
    """The submodules of ``cls``."""
    children: dict[str, str | None] = {}
    for field in cls.fields:
        annotation = field.node.annotation
        symbol = project.resolve(annotation, field.owner.scope)
        if symbol in project.linen or symbol == "flax.linen.Module" or is_linen_class(symbol):
            children[field.name] = symbol
    for one in attributes:
        item = items.get(id(one.value))
        if one.kind is Kind.SUBMODULE:
            children[one.name] = item.site.symbol if item is not None and item.site else None
    lists = frozenset(one.name for one in attributes if one.kind is Kind.STRUCTURE)
    return Children(project, children, items, lists)
