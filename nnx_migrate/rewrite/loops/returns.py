"""``return``: what a function gives of the state, and what stands before it."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.loops.expressions import used, value
from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    Kind,
    Many,
    Params,
    State,
    Stats,
    Step,
    Variables,
    flows_of,
    functions_of,
    holds_updates,
    together,
)
from nnx_migrate.rewrite.loops.making import before, is_dropped, is_update
from nnx_migrate.rewrite.loops.plan import Line, NewValues, Result
from nnx_migrate.rewrite.loops.shapes import group, is_changed, result_trees
from nnx_migrate.rewrite.loops.snapshots import snapshot


def read_return(frame: Frame, node: ast.Return) -> None:
    """Read a ``return``: updates in it are made before it, and the module holds what they change."""
    if node.value is None:
        frame.results.append((node, PLAIN))
        return
    elements = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    early = [one for one in elements if is_update(one)]
    if len(early) > 1:
        frame.problem(node, "several updates in one expression")
    kinds: dict[int, Kind] = {}
    for one in (*early, *(e for e in elements if e not in early)):
        frame.top = one if one in early or one is node.value else None
        inner = one.value if isinstance(one, ast.Starred) else one
        kinds[id(one)] = _with_numbers(frame, inner, value(frame, inner))
    lines: list[Line] = []
    for one in elements:
        kind, more = before(frame, one, kinds[id(one)], None)
        lines += [*more, *_updating(frame, one, kind)]
        kinds[id(one)] = _with_overrides(frame, one, kind)
        if _is_value(kinds[id(one)]) and snapshot(frame, one, kinds[id(one)]):
            kinds[id(one)] = PLAIN
    result_kinds = [kinds[id(one)] for one in elements]
    is_tuple = isinstance(node.value, ast.Tuple)
    if is_tuple and any(
        isinstance(one, State | Params | Variables) and not one.flow.model for one in result_kinds
    ):
        frame.problem(node, "a state that is returned beside others is given no name")
    kind = together(tuple(result_kinds)) if is_tuple else result_kinds[0]
    for function in functions_of(kind):
        frame.link(function)
    _check_result(frame, node, kind)
    frame.results.append((node, kind))
    if lines or is_changed(kind):
        parts = [result_trees(e, k) for e, k in zip(elements, result_kinds, strict=True)]
        found = group(parts) if is_tuple else parts[0]
        tree = None if not found else found[0] if len(found) == 1 else tuple(found)
        frame.change(node, Result(tuple(lines), tree, frame.node.body[-1] is node))


def _with_numbers(frame: Frame, node: ast.expr, kind: Kind) -> Kind:
    """A result without the number of steps, of which nobody knows what becomes: ``return loss, state.step``."""
    match kind:
        case Step():
            used(frame, node, kind)
            return PLAIN
        case Many(items=items) if isinstance(node, ast.Tuple | ast.List):
            pairs = zip(node.elts, items, strict=True)
            return Many(tuple(_with_numbers(frame, one, item) for one, item in pairs))
    return kind


def _with_overrides(frame: Frame, node: ast.expr, kind: Kind) -> Kind:
    """A result with all fields that the function replaces in any of its branches."""
    match kind:
        case Many(items=items):
            parts = node.elts if isinstance(node, ast.Tuple) else [node] * len(items)
            found = [_with_overrides(frame, *pair) for pair in zip(parts, items, strict=True)]
            if isinstance(node, ast.Call) and any(
                isinstance(one, State)
                and one.flow.key
                and (not one.flow.is_parameter or one != item)
                for one, item in zip(found, items, strict=True)
            ):
                frame.problem(node, "a call gives the state beside others, which is given no name")
            return Many(tuple(found))
        case State(flow=flow) if flow.is_parameter and flow.owner == frame.key:
            known = frame.summary.overrides.get(flow.key, set())
            return State(flow, tuple(one for one, _ in flow.fields if one in known))
    return kind


def _updating(frame: Frame, node: ast.expr, kind: Kind) -> list[Line]:
    """A call that updates the state that is returned stands before the ``return``."""
    if not isinstance(kind, State) or not isinstance(node, ast.Call):
        return []
    if not kind.flow.key or is_dropped(frame, node):
        return []
    names = frame.replace(node, kind.flow, kind.overrides)
    return [NewValues(names, (node,))]


def _is_value(kind: Kind) -> bool:
    """Whether a function returns arrays that are the module's: it goes on changing them."""
    is_value = isinstance(kind, Params | Variables | Stats)
    return is_value and any(one.is_parameter or one.optimizer for one in flows_of(kind))


def _check_result(frame: Frame, node: ast.Return, kind: Kind) -> None:
    for flow in flows_of(kind):
        if flow.key and flow.owner != frame.key:
            frame.problem(node, "part of a state of the function around is returned")
    if isinstance(kind, Many):
        made = [one for one in kind.items if not all(flow.is_parameter for flow in flows_of(one))]
        whole = {flow.key for one in made if not isinstance(one, Stats) for flow in flows_of(one)}
        stats = {flow.key for one in made if isinstance(one, Stats) for flow in flows_of(one)}
        if stats and (stats != whole or len(whole) > 1):
            frame.problem(node, "running statistics are returned beside another model")
    flow_keys = {flow.key for flow in flows_of(kind)} if holds_updates(kind) else set()
    if frame.owed - flow_keys:
        frame.problem(node, "running statistics that apply returned are not kept in the state")
