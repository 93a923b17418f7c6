"""Lines that stand before a statement: the module and optimizer that it makes, and updates."""

from __future__ import annotations

import ast
from dataclasses import replace

from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import Kind, Many, Params, State, Stats, Variables
from nnx_migrate.rewrite.loops.plan import Line, NewModel, NewOptimizer, NewValues

_UPDATES = ("apply_gradients", "replace")


def before(
    frame: Frame, node: ast.expr, kind: Kind, target: ast.expr | None
) -> tuple[Kind, list[Line]]:
    """A value with names for what it is made of, and the lines that make it."""
    lines: list[Line] = []
    known = target.id if isinstance(target, ast.Name) else "state"
    if isinstance(kind, State | Params | Variables) and isinstance(kind.flow.model, ast.expr):
        is_state = isinstance(kind, State)
        if target is not None or is_state:
            model, _ = frame.flow_names(known)
            lines.append(NewModel(model, kind.flow.model))
            key = kind.flow.key or known
            kind = replace(kind, flow=replace(kind.flow, model=model, key=key, owner=frame.key))
    if (
        isinstance(kind, State)
        and kind.flow.key
        and not kind.flow.optimizer
        and not kind.flow.is_parameter
    ):
        _, optimizer = frame.names_by_flow.get(kind.flow.key) or frame.flow_names(known)
        frame.names_by_flow.setdefault(known, (str(kind.flow.model), optimizer))
        model_name = kind.flow.model
        assert isinstance(model_name, str)
        bare = replace(kind.flow, stats=frozenset(), applies=True, fields=())
        named = frame.with_values(known, kind.flow)
        kind = State(replace(named, key=known, optimizer=optimizer, owner=frame.key))
        frame.rekey(bare, kind.flow)
        keywords = {one.arg: one.value for one in _keywords(node)}
        if "tx" in keywords:
            lines.append(NewOptimizer(optimizer, model_name, keywords["tx"]))
        lines += [NewValues((variable,), (keywords[name],)) for name, variable in named.fields]
    lines += frame.updates
    frame.updates = []
    return kind, lines


def of_one_call(frame: Frame, node: ast.expr, kind: Kind, target: ast.expr) -> Kind:
    """Running statistics that a call gives beside parameters are those of their module."""
    match node, kind, target:
        case ast.Call(), Many(items=items), ast.Tuple(elts=elements):
            pass
        case _:
            return kind
    for one, name in zip(items, elements, strict=False):
        if isinstance(one, Params) and not one.flow.key and isinstance(name, ast.Name):
            model, _ = frame.flow_names(name.id)
            flow = replace(one.flow, key=name.id, model=model, owner=frame.key)
            return Many(
                tuple(Stats(flow) if isinstance(x, Stats) and not x.flow.key else x for x in items)
            )
    return kind


def _keywords(node: ast.expr) -> list[ast.keyword]:
    return node.keywords if isinstance(node, ast.Call) else []


def is_update(node: ast.expr) -> bool:
    """Whether an expression is an update of a state, if it is one of a state at all."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _UPDATES
    )


def is_dropped(frame: Frame, call: ast.Call) -> bool:
    """Whether nothing of a call stays: what it makes or updates, other lines do."""
    if is_update(call):
        return True
    return any(one is call for _, one in frame.program.creates.get(frame.key, ()))
