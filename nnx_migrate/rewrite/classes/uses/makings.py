"""What each compact method of an object makes, over all of its classes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.data import ConversionContext
from nnx_migrate.rewrite.classes.items import Item, ItemKind, find_items
from nnx_migrate.rewrite.classes.uses.calls import Method, Methods
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk


@dataclass(frozen=True, eq=False)
class Making:
    """A compact method with what it makes.

    ``numbers``: class names under which Linen counts what it builds; "" for one that is not known.
    ``names``: the texts of the names that it gives itself.
    """

    method: Method
    numbers: frozenset[str]
    names: frozenset[str]

    def meets(self, other: Making) -> bool:
        """Whether the names of what both make depend on each other, or may be the same."""
        is_open = "" in self.numbers | other.numbers and self.numbers and other.numbers
        return bool(is_open or self.numbers & other.numbers or self.names & other.names)

    def __bool__(self) -> bool:
        """Whether it makes anything."""
        return bool(self.numbers or self.names)


def makings_of(
    project: Project,
    methods: Methods,
    cls: ClassInfo,
    items: Mapping[int, Item],
    context: ConversionContext,
) -> list[Making]:
    """What the compact methods make that an object of ``cls`` has; ``items`` are those of ``cls`` itself."""
    return [
        making_of(one, items if one.owner is cls else base_items(one.owner, context))
        for one in methods.live.values()
        if project.is_compact(one.owner, one.node)
    ]


def base_items(base: ClassInfo, context: ConversionContext) -> Mapping[int, Item]:
    """The items of a base class, as its own conversion has them."""
    sizes = context.sizes_of(base.name)
    return {} if sizes is None else find_items(base, sizes)


def making_of(method: Method, items: Mapping[int, Item]) -> Making:
    """What a method makes of the items of its class."""
    made = [items[id(one)] for one in walk(method.node) if id(one) in items]
    numbers = {name for one in made for name in _counted_names(one)}
    names = (one.name for one in made if one.kind is not ItemKind.STREAM)
    texts = {ast.unparse(one) for one in names if one is not None}
    return Making(method, frozenset(numbers), frozenset(texts))


def _counted_names(item: Item) -> frozenset[str]:
    if item.kind is not ItemKind.SITE or item.name is not None or item.site is None:
        return frozenset()
    return item.site.numbers if item.is_in_scope else frozenset({item.site.class_name or ""})
