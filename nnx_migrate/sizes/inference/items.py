"""A recorded size that is an item of a field, found by the variable of a loop.

``self.widths[i]`` is no sum or product of sources, so solving a site's sizes as one expression does
not find it. Here every recorded trace is run through the loops around the site, and the item has to
be the size in each round of each trace.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.evidence.evaluate import Surroundings, Unknown, evaluate
from nnx_migrate.sizes.evidence import ClassEvidence, RecordedAxis, Round, SizeEvidence
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.rounds import rounds_of
from nnx_migrate.source.walking import walk

_LEAST = 2  # rounds of one trace: fewer do not show what a variable does


def item_of_field(
    analysis: ClassAnalysis, evidence: ClassEvidence, call: ast.Call, want: RecordedAxis
) -> SizeEvidence | None:
    """The item that is the recorded size in every round; None unless exactly one is."""
    variables = list(_loop_variables(analysis, call))
    if want.axis is None or not variables:
        return None
    traces = evidence.rounds(call, want, lambda around: rounds_of(analysis, call, around))
    if not traces or max(len(one) for one in traces) < _LEAST:
        return None
    fields = [name for name, value in _fields(traces[0][0].around) if _is_counted(value)]
    texts = [f"self.{name}[{index}]" for name in fields for index in variables]
    fitting = [text for text in texts if _fits(text, traces)]
    if len(fitting) != 1:
        return None
    rows = [one for trace in traces for one in trace]
    return SizeEvidence(
        Expr(ast.parse(fitting[0], mode="eval").body),
        len({one.instance for one in rows}),
        len(rows),
    )


def _fields(around: Surroundings) -> Iterator[tuple[str, Any]]:
    for name in around.fields.get("fields", {}):
        try:
            yield name, evaluate(f"self.{name}", around)
        except Unknown:
            continue


def _is_counted(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(type(one) is int for one in value)


def _fits(text: str, traces: list[list[Round]]) -> bool:
    """Whether every recorded round has this size, and changes of every item it was have shown it."""
    changed = {name for trace in traces for one in trace for name in one.changes}
    used = set()
    for one in (one for trace in traces for one in trace):
        try:
            found = evaluate(text, one.around)
            field, index = text.rstrip("]").split("[")
            used.add(f"{field}[{evaluate(index, one.around)}]")
        except Unknown:
            return False
        if found != one.size:
            return False
    return used <= changed


def _loop_variables(analysis: ClassAnalysis, call: ast.Call) -> Iterator[str]:
    """Variables of the loops around a call that count, and that nothing else binds."""
    for method in (one for cls in analysis.root.info.mro for one in cls.methods.values()):
        if not any(node is call for node in walk(method)):
            continue
        stored = [
            node.id
            for node in walk(method)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
        ]
        for loop in walk(method):
            if isinstance(loop, ast.For) and any(
                node is call for one in loop.body for node in walk(one)
            ):
                name = _counter(loop)
                if name is not None and stored.count(name) == 1:
                    yield name


def _counter(loop: ast.For) -> str | None:
    """``i`` of ``for i in range(...)`` and ``for i, x in enumerate(xs)``."""
    match loop.target, loop.iter:
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range")):
            return name
        case ast.Tuple(elts=[ast.Name(id=name), _]), ast.Call(
            func=ast.Name(id="enumerate"), args=[_], keywords=[]
        ):
            return name
    return None
