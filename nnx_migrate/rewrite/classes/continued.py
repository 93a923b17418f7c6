"""A compact method that goes on where its base's compact method ends.

Linen numbers the submodules of both in one row, so the automatic names after ``super().__call__(x)``
start where the base's end: at ``Dense_2``, or at ``Dense_{len(self.hidden_sizes)}`` when the base
builds one for each entry of a field.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from nnx_migrate.rewrite.classes.construct import is_inline
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.evaluation import COMPREHENSIONS, free_names
from nnx_migrate.rewrite.classes.flow import (
    Branch,
    Build,
    Exit,
    Loop,
    Step,
    Unclear,
    builds,
    flow_of,
)
from nnx_migrate.rewrite.classes.items import Item, ItemKind, find_items
from nnx_migrate.rewrite.classes.naming import Count
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

RULE = "inheritance"
_MAYBE = (ast.IfExp, ast.BoolOp, ast.Lambda, *COMPREHENSIONS)


def counts_before(
    project: Project, cls: ClassInfo, sizes: ClassSizes, items: Mapping[int, Item]
) -> dict[str, Count]:
    """Linen's counters, by class name, where the class' compact method starts to build.

    Raises:
      Refused: it goes on from its base's in a way whose numbers are not known.
    """
    for name, method in cls.methods.items():
        calls = list(_super_calls(method, name))
        base = next((one for one in cls.mro[1:] if name in one.methods), None)
        if not calls or base is None or not project.is_compact(cls, method):
            continue
        if not project.is_compact(base, base.methods[name]):
            continue
        own = [one for one in items.values() if _is_in(one.call, method) and _counts(one)]
        if not own:
            return {}
        _check_place(method, calls, own)
        return _counts_of(base, base.methods[name], sizes, method)
    return {}


def _super_calls(method: ast.FunctionDef, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(method):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr)
            ) if attr == name:
                yield node


def _is_in(node: ast.AST, method: ast.FunctionDef) -> bool:
    return any(one is node for one in ast.walk(method))


def _counts(item: Item) -> bool:
    return item.kind is ItemKind.SITE and item.name is None


def _check_place(method: ast.FunctionDef, calls: list[ast.Call], own: Sequence[Item]) -> None:
    """The base builds first, once and always."""
    statements = [one for one in method.body if _is_certain(one, calls[0])]
    after = (calls[0].lineno, calls[0].col_offset)
    early = [one for one in own if (one.call.lineno, one.call.col_offset) < after]
    if len(calls) != 1 or not statements or early:
        raise Refused(
            (early[0].call if early else method),
            f"the compact {method.name} calls super().{method.name}, and both number their submodules",
            f"call super().{method.name} once, before anything is built",
            RULE,
        )


def _is_certain(node: ast.AST, wanted: ast.AST) -> bool:
    """Whether running the statement evaluates ``wanted`` exactly once."""
    if node is wanted:
        return True
    if isinstance(node, (*_MAYBE, ast.If, ast.For, ast.While, ast.FunctionDef, ast.Try, ast.Match)):
        return False
    return any(_is_certain(child, wanted) for child in ast.iter_child_nodes(node))


def _counts_of(
    base: ClassInfo, method: ast.FunctionDef, sizes: ClassSizes, at: ast.FunctionDef
) -> dict[str, Count]:
    items = {k: one for k, one in find_items(base, sizes).items() if not is_inline(one)}
    found: dict[str, Count] | None = None
    if not any(_super_calls(method, method.name)):
        found = _total(flow_of(method.body, items))
    if found is None:
        raise Refused(
            at,
            f"how many submodules {base.name} numbers before these is not known",
            "name the submodules, or hold an instance of the base class",
            RULE,
        )
    return found


def _total(steps: Sequence[Step]) -> dict[str, Count] | None:
    """Submodules without a name that the steps build, by class; None when nobody knows."""
    counts: dict[str, Count] = {}
    for step in steps:
        added: dict[str, Count] | None = {}
        match step:
            case Build(item=item) if _counts(item):
                kind = item.site.class_name if item.site else None
                added = {kind: Count(1)} if kind else None
            case Branch(body=body, orelse=orelse):
                added = _branch(body, orelse)
            case Loop():
                added = _loop(step)
            case Unclear():
                added = None
        if added is None:
            return None
        for kind, count in added.items():
            counts[kind] = _sum(counts.get(kind, Count(0)), count)
    return counts


def _branch(body: Sequence[Step], orelse: Sequence[Step]) -> dict[str, Count] | None:
    leaves = [one for one in (*body, *orelse) if isinstance(one, Exit)]
    if any(isinstance(one.node, ast.Return | ast.Break | ast.Continue) for one in leaves):
        return None
    first, second = _total(body), _total(orelse)
    return first if first == second else None


def _loop(step: Loop) -> dict[str, Count] | None:
    if not builds(step.body):
        return {}
    inner, rounds = _total(step.body), _rounds(step.iterable)
    jumps = any(isinstance(one, Exit) for one in step.body)
    if inner is None or rounds is None or step.conditions or jumps:
        return None
    if any(one.terms for one in inner.values()):
        return None
    return {kind: _times(one.start, rounds) for kind, one in inner.items()}


def _rounds(iterable: ast.expr) -> Count | None:
    """How often a loop runs, as far as fields tell."""
    match iterable:
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(number))]):
            return Count(number)
        case ast.Call(func=ast.Name(id="range"), args=[number], keywords=[]):
            text = ast.unparse(number)
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]):
            return _rounds(inner)
        case ast.Attribute():
            text = f"len({ast.unparse(iterable)})"
        case _:
            return None
    return Count(0, ((1, text),)) if free_names(iterable) <= {"self", "range", "len"} else None


def _times(factor: int, rounds: Count) -> Count:
    return Count(factor * rounds.start, tuple((factor * one, text) for one, text in rounds.terms))


def _sum(one: Count, other: Count) -> Count:
    return Count(one.start + other.start, (*one.terms, *other.terms))
