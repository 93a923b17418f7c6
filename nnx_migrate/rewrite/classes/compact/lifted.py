"""What a compact method builds in a function that a transformation runs on its module.

``nn.scan(body, ...)(self, x)`` with ``nn.Dense(4)(c)`` in ``body(mdl, c)``: ``__init__`` builds ``self.Dense_0``,
and the function reads it from the module that it is given, ``mdl.Dense_0``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from nnx_migrate.rewrite.classes.compact.call_options import Moves
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.rewrite.classes.naming import Name
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.taint import Replaced
from nnx_migrate.rewrite.classes.writing.construct import is_inline, operands_of
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.lifted_functions import lifted_functions
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

RULE = "compact"


def with_homes(
    project: Project, scope: Scope, method: ast.FunctionDef, items: Mapping[int, Item]
) -> dict[int, Item]:
    """The items of a compact method, those in functions that surely run on its module marked so.

    Args:
      scope: of the method.
    """
    found = dict(items)
    for function, user in lifted_functions(method, lambda node: project.resolve(node, scope)):
        inside = {id(node) for node in walk(function)} & items.keys()
        between = method.body[method.body.index(function) + 1 : method.body.index(user) + 1]
        others = {id(node) for one in between for node in walk(one)} & items.keys()
        plain = all(
            items[key].kind is ItemKind.SITE and not items[key].is_in_scope for key in inside
        )
        if plain and not any(is_inline(items[key]) for key in inside) and not others:
            found |= {key: replace(items[key], home=function) for key in inside}
    return found


def homes_of(items: Mapping[int, Item]) -> list[ast.FunctionDef]:
    """The functions that build, each once."""
    return list({id(one.home): one.home for one in items.values() if one.home}.values())


def check_lifted(
    items: Mapping[int, Item], names: Mapping[int, Name], moves: Moves, replaced: Replaced
) -> None:
    """What such a function builds must not depend on what only the function knows.

    Raises:
      Refused: a constructor call reads a parameter or local of the function, or its name is only
        counted when the function runs, which a transformation may do several times.
    """
    for key, item in items.items():
        if item.home is None:
            continue
        if key in names and names[key].counted is not None:
            reason = "how many of its class come before it is not known in the function"
            raise Refused(item.call, reason, "give the submodules names", RULE)
        own = names_bound_below(item.home)
        for operand in operands_of(item, moves.values):
            found = free_names(operand, replaced) & own
            if found:
                raise Refused(
                    item.call,
                    f"it is built with {min(found)!r} of the function that a transformation runs",
                    "build it from fields only",
                    RULE,
                )
