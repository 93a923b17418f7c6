"""Lists of submodules in ``setup``: which loop makes them, and which elements have names."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression, dotted_node, generator, numbered_name
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import without_comments
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind, statements
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.source.bindings import target_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, is_name, walk


@dataclass(frozen=True)
class ComprehensionLoop:
    """``self.<attribute> = [<submodule> for <target> in <iter>]``.

    Attributes:
      index: what numbers the elements where the loop has no name for it (``for _ in range(3)``).
    """

    attribute: Attribute
    node: ast.ListComp
    generator: ast.comprehension
    item: Item
    index: str = ""

    @property
    def is_nameless(self) -> bool:
        """Whether the loop counts without a name for the number."""
        target = self.generator.target
        nodes = [one for one in each(self.node, ast.Name) if one is not target]
        is_blank = is_name(target, "_")
        return self.counts and is_blank and not any(one.id == "_" for one in nodes)

    def target(self, renderer: Renderer) -> Expression:
        """The loop's variable."""
        return dotted_node(self.index) if self.index else renderer.render(self.generator.target)

    @property
    def counts(self) -> bool:
        """Whether the loop variable numbers the elements from 0."""
        match self.generator.iter, self.generator.target:
            case ast.Call(func=ast.Name(id="range"), args=[_], keywords=[]), ast.Name():
                return True
            case _:
                return False

    def name_node(self, renderer: Renderer) -> Expression:
        """The attribute name of one element."""
        if self.item.name is not None:
            found: Expression = renderer.render(self.item.name)
            return found
        return numbered_name(self.attribute.name, self.target(renderer))

    def reads(self) -> frozenset[str]:
        """Names that the header and the element names read."""
        names = free_names(self.generator.iter)
        if self.item.name is not None:
            names |= free_names(self.item.name)
        return names - frozenset(target_names(self.generator.target))

    def property_value(self, renderer: Renderer) -> Expression:
        """The expression of the read-only property; Linen makes a tuple of the list."""
        target = without_comments(self.target(renderer))
        over = without_comments(renderer.render(self.generator.iter))
        element = call("getattr", "self", self.name_node(renderer))
        return call("tuple", generator(element, target, over))


def comprehension_loop(one: Attribute, items: Mapping[int, Item]) -> ComprehensionLoop | None:
    """Read an attribute's value as a plain list comprehension of one submodule each."""
    match one.value:
        case ast.ListComp(elt=element, generators=[ast.comprehension(ifs=[]) as generator]) if (
            not isinstance(one.statement, ast.AugAssign)
        ):
            item = items.get(id(element))
            if item is not None and item.kind is ItemKind.SITE:
                return ComprehensionLoop(one, one.value, generator, item)
    return None


def listed_params(one: Attribute, items: Mapping[int, Item]) -> Iterator[int]:
    """Parameters that are elements of a list, tuple or dict, by id of their call."""
    elements: list[ast.expr] = []
    match one.value:
        case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Dict(values=elts):
            elements = elts
        case ast.ListComp(elt=element) | ast.DictComp(value=element):
            elements = [element]
    for element in elements:
        item = items.get(id(element))
        if item is not None and item.kind is ItemKind.PARAM:
            yield id(element)


def listed_items(
    method: ast.FunctionDef, attributes: list[Attribute], items: Mapping[int, Item]
) -> list[Item]:
    """Submodules with names of their own in local lists that become attributes."""
    lists = {
        node.id
        for one in attributes
        if one.kind is Kind.STRUCTURE
        for node in each(one.value, ast.Name)
    }
    containers = (
        items.get(id(node))
        for name, value in put_in_lists(method)
        if name in lists
        for node in walk(value)
    )
    named = [one for one in containers if one is not None and one.name is not None]
    return [one for one in named if one.kind is ItemKind.SITE]


def put_in_lists(method: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """What local lists and dicts are made of, by their names: ``layers = [a]``, ``layers.append(b)``, ``d[k] = c``."""
    for statement in statements(method.body):
        match statement:
            case (
                ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.List() | ast.Tuple() | ast.ListComp() as value,
                )
                | ast.AugAssign(target=ast.Name(id=name), value=value)
                | ast.Expr(
                    value=ast.Call(
                        func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend"),
                        args=[value],
                    )
                )
                | ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))], value=value)
            ):
                yield name, value


def free_local(cls: ClassInfo, name: str, used_names: Collection[str] = ()) -> str:
    """The name of a local that the class's code does not use: ``i``, else ``i_``."""
    while name in cls.local_names or name in used_names:
        name += "_"
    return name
