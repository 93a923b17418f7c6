"""Layers and modules that a compact method builds and never calls: Linen's ``init`` gives them no parameters.

A layer with a name may be called by code that is not seen here, unless all that the method does with
the name is to ask it for a field, or for a carry after its arguments changed (else `CarryCell`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.sizes.result import ClassSizes, SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, walk

RULE = "compact"
_BUILT = frozenset({SiteKind.LAYER, SiteKind.CLASS})
_CALLS = frozenset({"__call__", "attend"})  # these make parameters, whoever is handed them


def check_uncalled(cls: ClassInfo, sizes: ClassSizes) -> None:
    """Refuse a layer with a name that is only asked for a carry or its fields.

    Raises:
      Refused: there is one.
    """
    for name, method in cls.methods.items():
        for built in _only_asked(method) if name != "setup" else ():
            site = sizes.sites.get(id(built))
            if site is not None and site.kind in _BUILT and site.reached != "False":
                raise Refused(
                    built,
                    "it is never called, and Linen's init gives it no parameters then",
                    "ask for the carry where the cell is built, or write the values out",
                    RULE,
                )


def _only_asked(method: ast.FunctionDef) -> Iterator[ast.Call]:
    """What is bound to a local name once, and then only asked for a carry or fields."""
    names = each(method, ast.Name)
    asked = {id(one.value) for one in each(method, ast.Attribute) if one.attr not in _CALLS}
    asked -= {
        id(one.func.value)
        for one in each(method, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr != "initialize_carry"
    }
    for node in walk(method):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as built):
                same = [one for one in names if one.id == name]
                loads = [one for one in same if isinstance(one.ctx, ast.Load)]
                if len(same) == len(loads) + 1 and all(id(one) in asked for one in loads):
                    yield built
