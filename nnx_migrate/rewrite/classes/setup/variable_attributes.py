"""Which attributes of ``setup`` follow a parameter or variable, and what they are then called."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.reading.attributes import (
    Attribute,
    Kind,
    setup_attributes,
    statements,
)
from nnx_migrate.rewrite.classes.setup.dependence import dependence_in
from nnx_migrate.rewrite.classes.setup.lists import listed_params
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, is_none_literal, walk

_VARIABLES = (Kind.PARAM, Kind.VARIABLE)


def attributes_of(
    cls: ClassInfo, method: ast.FunctionDef, items: Mapping[int, Item]
) -> list[Attribute]:
    """Assignments to attributes in ``method`` (``setup``), in source order.

    Raises:
      Refused: an attribute has the name of a variable and holds something else.
    """
    dependence = dependence_in(cls, method)
    found = [
        _follow(one, method, items) if dependence.of(one.value) else one
        for one in setup_attributes(cls, method, items)
    ]
    used_names = cls.method_names | cls.field_names | {one.name for one in found}
    loose = _loose(method, items, found)
    return [_rename(one, loose, used_names) for one in found]


def _follow(one: Attribute, method: ast.FunctionDef, items: Mapping[int, Item]) -> Attribute:
    """The attribute as computed, or as another name of the variable that a local name holds."""
    if id(one.value) in items or one.kind is Kind.SUBMODULE:
        return one
    if isinstance(one.value, ast.ListComp | ast.DictComp) and any(listed_params(one, items)):
        return one
    if any(item.kind is ItemKind.SITE for item in _inside(one.value, items)):
        return one
    if one.kind in _VARIABLES and isinstance(one.value, ast.Name):
        stored = _stored_name(one.value.id, method, items)
        if stored is not None:
            return replace(one, storage_name=None if stored == one.name else stored)
    return replace(one, kind=Kind.COMPUTED, storage_name=None)


def _inside(node: ast.AST, items: Mapping[int, Item]) -> list[Item]:
    return [items[id(inner)] for inner in walk(node) if id(inner) in items]


def _stored_name(name: str, method: ast.FunctionDef, items: Mapping[int, Item]) -> str | None:
    """The variable's name when a local name only ever holds that one variable."""
    values = [
        statement.value
        for statement in statements(method.body)
        if isinstance(statement, ast.Assign)
        and [getattr(one, "id", None) for one in statement.targets] == [name]
    ]
    stores = [
        node
        for node in each(method, ast.Name)
        if node.id == name and isinstance(node.ctx, ast.Store)
    ]
    item = items.get(id(values[0])) if len(values) == len(stores) == 1 else None
    return None if item is None else _literal(item)


def _literal(item: Item) -> str | None:
    value = item.name.value if isinstance(item.name, ast.Constant) else None
    return value if isinstance(value, str) else None


def _loose(
    method: ast.FunctionDef, items: Mapping[int, Item], attributes: list[Attribute]
) -> dict[str, Item]:
    """Variables by name that no attribute holds directly."""
    values = {id(one.value) for one in attributes}
    made = [one for one in _inside(method, items) if one.kind is not ItemKind.SITE]
    return {name: one for one in made if (name := _literal(one)) and id(one.call) not in values}


def _rename(one: Attribute, loose: Mapping[str, Item], used_names: frozenset[str]) -> Attribute:
    """A computed attribute with a variable's name is read under another: the variable keeps it."""
    item = loose.get(one.name)
    if item is None or is_none_literal(one.value):
        return one
    if one.kind in _VARIABLES and one.storage_name is None and isinstance(one.value, ast.Name):
        return one
    other = f"_{one.name}"
    if one.kind is Kind.COMPUTED and other not in used_names:
        return replace(one, storage_name=other)
    raise ClassRefused(
        item.call,
        f"{one.name!r} names self.{one.name} as well, and an NNX module has one attribute of a name",
        "rename one of them",
        "names",
    )
