"""Methods that a compact method calls for a carry: Linen counts the cell that they build there.

``carry = self.initialize_carry(4)`` of ``def initialize_carry(n): return nn.GRUCell(n).initialize_carry(...)``
takes ``GRUCell_0``, and the next cell is ``GRUCell_1``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import takewhile

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind
from nnx_migrate.sizes.carry_cells import carry_cells
from nnx_migrate.sizes.result import ClassSizes, Site
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, walk


def counted_calls(
    cls: ClassInfo, sizes: ClassSizes, compact: ast.FunctionDef | None
) -> Mapping[int, Item]:
    """What Linen counts in calls of such methods, by id of the call ``self.method(...)``.

    Raises:
      Refused: where it counts is not known.
    """
    found: dict[int, Item] = {}
    names = cls.method_names - {"setup"}
    for name in sorted(names):
        place = cls.find(name)
        if place is None or place[1] is compact:
            continue
        sites = _sites(place[1], sizes)
        if not sites:
            continue
        calls = _calls(compact, name) if compact is not None else []
        first = takewhile(_is_plain, place[1].body)
        always = any(sites[0].call in walk(one) for one in first)
        if len(sites) > 1 or not always or len(calls) != _mentions(cls, name):
            raise ClassRefused(
                sites[0].call,
                f"how often Linen counts the cell of {name!r} is not known",
                "give the submodules names",
                "compact",
            )
        found |= {id(call): Item(ItemKind.SITE, call, sites[0]) for call in calls}
    return found


def _mentions(cls: ClassInfo, name: str) -> int:
    """How often methods of the class name one of theirs; asking a cell for its carry is none."""
    methods = cls.every_method
    questions = {
        id(cell.carry_call.func) for method in methods for cell in carry_cells(method).values()
    }
    found = [one for method in methods for one in each(method, ast.Attribute) if one.attr == name]
    return sum(id(one) not in questions for one in found)


def _sites(method: ast.FunctionDef, sizes: ClassSizes) -> list[Site]:
    built = {id(one.cell): one.cell for one in carry_cells(method).values()}
    return [sizes.sites[key] for key in built if key in sizes.sites]


def _calls(compact: ast.FunctionDef, name: str) -> list[ast.Call]:
    receiver = compact.args.args[0].arg if compact.args.args else None
    found: list[ast.Call] = []
    for node in each(compact, ast.Call):
        match node.func:
            case ast.Attribute(value=ast.Name(id=owner), attr=attr):
                found += [node] if (owner, attr) == (receiver, name) else []
    return found


def _is_plain(statement: ast.stmt) -> bool:
    """Whether the statement behind it surely runs; of a ``return``, all of its value."""
    kinds = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Return
    partly = ast.IfExp | ast.BoolOp | ast.Lambda | ast.comprehension
    return isinstance(statement, kinds) and not any(
        isinstance(one, partly) for one in walk(statement)
    )
