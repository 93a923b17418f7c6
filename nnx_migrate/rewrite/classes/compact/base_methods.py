"""A compact method that goes on where a compact method of a base ends.

Linen numbers the submodules of both in one row, so the automatic names after ``super().__call__(x)``, or
``self.encode(x)`` of a base's ``encode``, start where the base's end: at ``Dense_2``, or at ``Dense_{len(self.hidden_sizes)}`` when the base
builds one for each entry of a field.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, find_items
from nnx_migrate.rewrite.classes.naming import Count
from nnx_migrate.rewrite.classes.reading.evaluation import COMPREHENSIONS, free_names
from nnx_migrate.rewrite.classes.reading.flow import (
    Branch,
    Build,
    Exit,
    Leave,
    Loop,
    Step,
    Unclear,
    builds,
    flow_of,
)
from nnx_migrate.rewrite.classes.uses.calls import Method, Methods
from nnx_migrate.rewrite.classes.uses.makings import Making
from nnx_migrate.rewrite.classes.writing.construct import is_inline
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, walk

RULE = "inheritance"
_MAYBE = (ast.IfExp, ast.BoolOp, ast.Lambda, *COMPREHENSIONS)


def counts_before(
    cls: ClassInfo,
    sizes: ClassSizes,
    items: Mapping[int, Item],
    methods: Methods,
    makings: Sequence[Making],
) -> dict[str, Count]:
    """Linen's counters, by class name, where the class' compact method starts to build.

    Raises:
      Refused: it goes on from another one in a way whose numbers are not known, or both make one name.
    """
    for own in makings:
        others = [one for one in makings if one.method.owner is not cls and own.meets(one)]
        if own.method.owner is not cls or not others:
            continue
        base, call = others[0].method, _call_of(own.method, others[0].method, methods)
        inside = [
            one for one in items.values() if _counts(one) and _is_in(one.call, own.method.node)
        ]
        if (
            len(others) > 1
            or own.names & others[0].names
            or call is None
            or not _is_before(own.method.node, call, inside)
        ):
            raise _meeting(own, others[0], call)
        return _counts_of(base, sizes, own.method.node, methods, makings)
    return {}


def _meeting(own: Making, other: Making, call: ast.Call | None) -> ClassRefused:
    method, base = own.method.node, other.method
    called = f"the compact {base.node.name} of {base.owner.name}"
    does = "calls" if call is not None else "stands beside"
    both = (
        "number their submodules" if own.numbers & other.numbers else "may make what has one name"
    )
    return ClassRefused(
        call or method,
        f"{method.name} {does} {called}, and both {both}",
        f"call {base.node.name} of the base once, before anything is built",
        RULE,
    )


def _call_of(own: Method, base: Method, methods: Methods) -> ast.Call | None:
    """The only place that names the base's method, where that is a call in the class' own."""
    mentions = [
        (id_, one)
        for id_, found in methods.mentions.items()
        for one in found
        if one.method.node is base.node
    ]
    if len(mentions) != 1 or mentions[0][0] != id(own.node):
        return None
    func = mentions[0][1].node
    return next((one for one in each(own.node, ast.Call) if one.func is func), None)


def _is_in(node: ast.AST, method: ast.FunctionDef) -> bool:
    return any(one is node for one in walk(method))


def _counts(item: Item) -> bool:
    return item.kind is ItemKind.SITE and item.name is None


def _is_before(method: ast.FunctionDef, call: ast.Call, own: Sequence[Item]) -> bool:
    """Whether the base builds first, once and always."""
    after = (call.lineno, call.col_offset)
    early = any((one.call.lineno, one.call.col_offset) < after for one in own)
    return not early and any(_is_certain(one, call) for one in method.body)


def _is_certain(node: ast.AST, target: ast.AST) -> bool:
    """Whether running the statement evaluates ``target`` exactly once."""
    if node is target:
        return True
    if isinstance(node, (*_MAYBE, ast.If, ast.For, ast.FunctionDef, ast.Match)):
        return False
    return any(_is_certain(child, target) for child in ast.iter_child_nodes(node))


def _counts_of(
    base: Method,
    sizes: ClassSizes,
    at: ast.FunctionDef,
    methods: Methods,
    makings: Sequence[Making],
) -> dict[str, Count]:
    items = {k: one for k, one in find_items(base.owner, sizes).items() if not is_inline(one)}
    others = [one.method for one in makings if one.numbers and one.method.node is not base.node]
    found: dict[str, Count] | None = None
    if not any(methods.runs(base, one) for one in others):
        found = _total(flow_of(base.node.body, items))
    if found is None:
        raise ClassRefused(
            at,
            f"how many submodules {base.owner.name} numbers before these is not known",
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
            case Leave() | Unclear():
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
