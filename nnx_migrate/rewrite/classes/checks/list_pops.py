"""Lists of submodules that ``pop`` changes: which of them a loop meets then, and with which size, is not followed."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.reading.holders import Holders
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each

RULE = "class"


def check_list_pops(cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Nothing, unless a method takes a submodule out of a list.

    Raises:
      Refused: ``layers = [nn.Dense(3), nn.Dense(4)]``, then ``layers.pop()``; not ``skips.pop()`` of arrays.
    """
    pops = [
        (method, call)
        for method in cls.every_method
        for call in each(method, ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "pop"
    ]
    if not pops:
        return
    holders = Holders(cls, {key for key, one in items.items() if one.kind is ItemKind.SITE})
    for method, call in pops:
        if isinstance(call.func, ast.Attribute) and holders.has(call.func.value, method):
            reason = "a submodule is taken out of a list"
            raise ClassRefused(call, reason, "build the list without it", RULE)
