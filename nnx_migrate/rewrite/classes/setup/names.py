"""Names that ``setup`` gives its submodules: ``nn.Dense(3, name="a")`` is ``a``, whatever attribute holds it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.source.walking import each, walk

RULE = "setup"


def check_names(
    method: ast.FunctionDef,
    found: Sequence[Attribute],
    items: Mapping[int, Item],
    listed: Iterable[Item],
) -> None:
    """Every name that is given must be one that the submodule is stored under.

    Args:
      listed: those with names in local lists that become attributes.

    Raises:
      Refused: ``self.a = nn.Dense(3, name="b") if self.deep else None``, where ``a`` would be the name; an
        attribute whose submodule has another name in each branch; a named element of a list that is
        stored by itself, too.
    """
    _check_branches(found)
    in_lists = {id(one.call) for one in listed}
    placed = {id(one.value) for one in found} | in_lists
    for one in found:
        if one.kind is Kind.STRUCTURE:
            placed |= {id(node) for node in walk(one.value)}
        elif one.value is not None:
            _check_elements(method, one, in_lists)
            placed |= {
                id(node) for node in walk(one.value) if _is_called(items.get(id(node)), one.name)
            }
    for item in items.values():
        if item.kind is ItemKind.SITE and item.name is not None and id(item.call) not in placed:
            raise Refused(
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


def _check_branches(found: Iterable[Attribute]) -> None:
    names: dict[str, str] = {}
    for one in found:
        if one.kind is Kind.SUBMODULE:
            stored = one.stored or one.name
            if names.setdefault(one.name, stored) != stored:
                raise Refused(
                    one.statement,
                    f"the submodule self.{one.name} has another name here",
                    "give it one name",
                    RULE,
                )


def _check_elements(method: ast.FunctionDef, one: Attribute, in_lists: Collection[int]) -> None:
    """``self.first = parts[0]`` beside ``self.rest = parts[1:]``, whose elements carry their names."""
    read = {node.id for node in each(one.value, ast.Name)}
    if read & {*_lists_of(method, in_lists)}:
        raise Refused(
            one.statement,
            "a submodule with a name of its own is stored by itself and in a list",
            "build it on a line of its own",
            RULE,
        )


def _lists_of(method: ast.FunctionDef, in_lists: Collection[int]) -> Iterator[str]:
    for statement in walk(method):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                parts: list[ast.expr] = [value]
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=parts)):
                pass
            case _:
                continue
        if any(id(node) in in_lists for part in parts for node in walk(part)):
            yield name
