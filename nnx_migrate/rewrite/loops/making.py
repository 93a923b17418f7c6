"""Lines that stand before a statement: the module and optimizer that it makes, and updates."""

from __future__ import annotations

import ast
from dataclasses import replace

from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import Kind, Params, State, Variables
from nnx_migrate.rewrite.loops.plan import Line, NewModel, NewOptimizer, Updated


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
        and not kind.flow.given
    ):
        _, optimizer = frame.flow_names(known)
        model_name = kind.flow.model
        assert isinstance(model_name, str)
        bare = replace(kind.flow, stats=frozenset())
        kind = State(replace(kind.flow, key=known, optimizer=optimizer, owner=frame.key))
        frame.rekey(bare, kind.flow)
        tx = next((one.value for one in _keywords(node) if one.arg == "tx"), None)
        if tx is not None:
            lines.append(NewOptimizer(optimizer, model_name, tx))
    for flow, grads in frame.updates:
        assert isinstance(flow.model, str)
        lines.append(Updated(flow.optimizer, flow.model, grads))
    frame.updates = []
    return kind, lines


def _keywords(node: ast.expr) -> list[ast.keyword]:
    return node.keywords if isinstance(node, ast.Call) else []
