"""Compact methods that other compact methods of the class call: Linen counts on there.

Every such call builds submodules of its own (flax 0.12.8, linen/module.py, ``_call_wrapped_method``: only the
outermost compact method resets the counters), where the converted class holds those of one call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

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


# State that ``setup`` changes: Linen runs ``setup`` before every call, NNX its ``__init__`` once.

RULE = "setup"
_CHANGES = frozenset({"put_variable", "sow"})


def check_every_call(cls: ClassInfo) -> None:
    """Refuse what changes variables in ``setup``, or in methods that it calls.

    Raises:
      Refused: something does, other than under ``if self.is_initializing():``.
    """
    for method in _run_by_setup(cls):
        for node in _unguarded(method, receiver_of(method)):
            if _changes(node, receiver_of(method)):
                raise Refused(
                    node,
                    "setup changes a variable here, which Linen does before every call",
                    "change it in the method that is called, or under `if self.is_initializing():`",
                    RULE,
                )


def _changes(node: ast.AST, receiver: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=attr)):
            return attr in _CHANGES
        case ast.Attribute(value=ast.Name(id=name), attr="value", ctx=ast.Store()):
            return name != receiver  # an attribute of that name is no variable
        case ast.Attribute(attr="value", ctx=ast.Store()):
            return True
    return False


def _run_by_setup(cls: ClassInfo) -> list[ast.FunctionDef]:
    methods = {name: one for owner in reversed(cls.mro) for name, one in owner.methods.items()}
    found: list[ast.FunctionDef] = [methods["setup"]] if "setup" in methods else []
    for method in found:  # grows while it is read
        for node in walk(method):
            called = methods.get(self_call(node, receiver_of(method)) or "")
            if called is not None and called not in found:
                found.append(called)
    return found


def _unguarded(node: ast.AST, receiver: str) -> Iterator[ast.AST]:
    """The nodes that run outside of the initial call, too."""
    yield node
    for child in ast.iter_child_nodes(node):
        guarded = isinstance(node, ast.If) and child in node.body
        if not (guarded and self_call(node.test, receiver) == "is_initializing"):  # type: ignore[attr-defined]
            yield from _unguarded(child, receiver)


# ---- which submodules may be lifted over axes

LIFTED = "stacked"


def check_late(project: Project, items: Iterable[Item], makes_late: Callable[[str], bool]) -> None:
    """Refuse submodules lifted over axes whose calls make variables that only a call can make.

    A lifted call gets the variables it stacks from outside (:func:`nnx_migrate.nn.lifts.scan`).

    Args:
      makes_late: whether every call of a class makes such a variable.

    Raises:
      Refused: a submodule is of such a class.
    """
    for item in items:
        cls = project.linen.get(item.site.symbol or "") if item.site is not None else None
        if cls is None or item.site is None or not makes_late(cls.name):
            continue
        prefix = (item.site.class_name or "").removesuffix(cls.node.name)
        if any(lift in prefix for lift in ("Scan", "Vmap")):
            reason = f"{cls.node.name} makes a variable in every call, and is lifted over axes here"
            recipe = "read the variable's shape from fields, or make it outside of the lift"
            raise Refused(item.call, reason, recipe, LIFTED)
