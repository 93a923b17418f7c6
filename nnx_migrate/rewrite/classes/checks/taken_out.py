"""Lists of submodules that ``pop`` changes: which of them a loop meets then, and with which size, is not followed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.reading.evaluation import held_parts
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, walk

RULE = "class"


def check_taken_out(cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Nothing, unless a method takes a submodule out of a local list.

    Raises:
      Refused: ``layers = [nn.Dense(3), nn.Dense(4)]``, then ``layers.pop()``; not ``skips.pop()`` of arrays.
    """
    for method in cls.methods.values():
        lists = {*_lists(method, items)}
        for call in each(method, ast.Call):
            match call.func:
                case ast.Attribute(value=ast.Name(id=name), attr="pop") if name in lists:
                    reason = "a submodule is taken out of a list"
                    raise Refused(call, reason, "build the list without it", RULE)


def _lists(method: ast.FunctionDef, items: Mapping[int, Item]) -> Iterator[str]:
    """Local names that are bound to lists of submodules, or get one."""
    for node in walk(method):
        values: list[ast.expr]
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values = [value]
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                values = [value]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=values):
                pass
            case _:
                continue
        if any(_holds(one, items) for one in values):
            yield name


def _holds(value: ast.AST, items: Mapping[int, Item]) -> bool:
    item = items.get(id(value))
    is_built = item is not None and item.kind is ItemKind.SITE
    return is_built or any(_holds(one, items) for one in held_parts(value))
