"""Compact methods that other compact methods of the class call: Linen counts on there.

Every such call builds submodules of its own (flax 0.12.8, linen/module.py, ``_call_wrapped_method``: only the
outermost compact method resets the counters), where the converted class holds those of one call.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of, self_call
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

_REPEATS = (
    *(ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef),
)


def check_compact_calls(
    project: Project, cls: ClassInfo, items: Mapping[int, Item], compact: ast.FunctionDef | None
) -> None:
    """Refuse a compact method that builds and that one of the others may run more than once.

    Raises:
      Refused: it does.
    """
    if compact is None or not any(_counts(items.get(id(one))) for one in walk(compact)):
        return
    methods = {name: one for owner in reversed(cls.mro) for name, one in owner.methods.items()}
    calls = {name: _calls(one) for name, one in methods.items()}
    others = [
        name for name, one in methods.items() if one is not compact and project.is_compact(cls, one)
    ]
    for name in others:
        if _runs(name, compact.name, calls, frozenset()) > 1:
            raise Refused(
                compact,
                f"the compact {name} may call {compact.name} more than once, and Linen builds its"
                " submodules anew for each call",
                "build them in setup, or make it a method that is not compact",
                "compact",
            )


def _counts(item: Item | None) -> bool:
    return item is not None and item.kind is ItemKind.SITE and item.name is None


def _runs(
    name: str, wanted: str, calls: Mapping[str, Mapping[str, int]], seen: frozenset[str]
) -> int:
    """How often a call of ``name`` may run ``wanted``; 2 stands for any number above."""
    if name == wanted:
        return 1
    if name in seen or name not in calls:
        return 0
    inner = {*seen, name}
    found = (
        times * _runs(one, wanted, calls, frozenset(inner)) for one, times in calls[name].items()
    )
    return min(2, sum(found))


def _calls(method: ast.FunctionDef) -> dict[str, int]:
    """Methods of its module that a method names, and how often it may call each."""
    found: dict[str, int] = {}
    receiver = receiver_of(method)
    called = {id(one.func) for one in walk(method) if self_call(one, receiver)}  # type: ignore[attr-defined]
    todo: list[tuple[ast.AST, int]] = [(one, 1) for one in method.body]
    while todo:
        node, times = todo.pop()
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                plain = times if id(node) in called else 2  # handed on: nobody knows
                found[attr] = found.get(attr, 0) + plain
        inside = 2 if isinstance(node, _REPEATS) else times
        todo += [(one, inside) for one in ast.iter_child_nodes(node)]
    return found
