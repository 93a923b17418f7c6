"""Targets of assignments: what their names hold, and what stands for them in the new text."""

from __future__ import annotations

import ast
from dataclasses import replace

from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    ApplyFn,
    Kind,
    Many,
    Params,
    State,
    Stats,
    Step,
    Unsure,
    Updates,
    Variables,
    is_special,
)
from nnx_migrate.rewrite.loops.plan import Tree
from nnx_migrate.rewrite.loops.shapes import group


def bind(frame: Frame, target: ast.expr, kind: Kind) -> list[Tree]:
    """Let a target hold a value; what stands in its place."""
    match target, kind:
        case ast.Name(), _:
            return _bind_name(frame, target, kind)
        case ast.Tuple(elts=elements), Many(items=items) if len(elements) == len(items):
            parts = [bind(frame, e, k) for e, k in zip(elements, items, strict=True)]
            if parts == [[one] for one in elements]:
                return [target]
            return group(parts)
    if is_special(kind):
        frame.problem(target, f"part of the state is kept in `{ast.unparse(target)[:40]}`")
    bind_targets(frame, target)
    return [target]


def bind_targets(frame: Frame, node: ast.AST) -> None:
    """Names that are stored below a node hold nothing special."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            frame.bind(one.id, PLAIN)


def _bind_name(frame: Frame, target: ast.Name, kind: Kind) -> list[Tree]:
    name = target.id
    if name in frame.outer_names and is_special(kind):
        frame.problem(target, f"{name} is shared with other functions")
    match kind:
        case State(flow=flow) if not flow.key and name == "_":
            frame.bind(name, Unsure("it is the state, which has no name in NNX"))
            return [target]
        case State(flow=flow) if not flow.key:
            model, optimizer = frame.flow_names(name)
            flow = frame.with_values(name, flow)
            frame.bind(
                name,
                State(replace(flow, key=name, model=model, optimizer=optimizer, owner=frame.key)),
            )
            return [model, optimizer, *(variable for _, variable in flow.fields)]
        case Params(flow=flow) | Variables(flow=flow) if not flow.key:
            model, _ = frame.flow_names(name)
            kind = replace(kind, flow=replace(flow, key=name, model=model, owner=frame.key))
            frame.bind(name, kind)
            return [model]
        case Many(items=items):
            frame.bind(name, kind)
            if any(isinstance(one, State) for one in items):
                frame.problem(target, "a tuple with the state in it has a name")
            return [] if all(isinstance(one, Stats | Updates) for one in items) else [target]
        case State(flow=flow, overrides=fields):
            frame.bind(name, State(flow))
            return [*frame.replace(target, flow, fields)]
        case Params() | Variables() | Stats() | Updates() | Step() | ApplyFn():
            frame.bind(name, kind)
            return []
    frame.bind(name, kind)
    return [target]
