"""Names that ``setup`` gives its submodules: ``nn.Dense(3, name="a")`` is ``a``, whatever attribute holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.rewrite.classes.setup.lists import put_in_lists
from nnx_migrate.source.walking import walk

RULE = "setup"


def check_names(
    method: ast.FunctionDef,
    attributes: Sequence[Attribute],
    items: Mapping[int, Item],
    list_items: Iterable[Item],
) -> None:
    """Every name that is given must be one that the submodule is stored under.

    Args:
      list_items: those with names in local lists that become attributes.

    Raises:
      Refused: ``self.a = nn.Dense(3, name="b") if self.deep else None``, where ``a`` would be the name; an
        attribute whose submodule has another name in each branch; a named element of a list that is
        stored by itself, too.
    """
    _check_branches(attributes)
    in_lists = {id(one.call) for one in list_items}
    lists = {
        name
        for name, value in put_in_lists(method)
        if any(id(node) in in_lists for node in walk(value))
    }
    placed = {id(one.value) for one in attributes} | in_lists
    for one in attributes:
        nodes = [*walk(one.value)]
        if one.kind is Kind.STRUCTURE:
            placed |= {id(node) for node in nodes}
            continue
        if any(isinstance(node, ast.Name) and node.id in lists for node in nodes):
            raise ClassRefused(  # ``self.first = parts[0]`` beside ``self.rest = parts[1:]``
                one.statement,
                "a submodule with a name of its own is stored by itself and in a list",
                "build it on a line of its own",
                RULE,
            )
        placed |= {id(node) for node in nodes if _is_called(items.get(id(node)), one.name)}
    for item in items.values():
        if item.kind is ItemKind.SITE and item.name is not None and id(item.call) not in placed:
            raise ClassRefused(
                item.call,
                "a submodule is given a name inside a larger expression",
                "assign it to an attribute of its own",
                RULE,
            )


def _is_called(item: Item | None, name: str) -> bool:
    """Whether a submodule is given just this name."""
    match item.name if item is not None else None:
        case ast.Constant(value=value):
            return value == name
    return False


def _check_branches(attributes: Iterable[Attribute]) -> None:
    names: dict[str, str] = {}
    for one in attributes:
        if one.kind is Kind.SUBMODULE:
            stored = one.storage_name or one.name
            if names.setdefault(one.name, stored) != stored:
                raise ClassRefused(
                    one.statement,
                    f"the submodule self.{one.name} has another name here",
                    "give it one name",
                    RULE,
                )
