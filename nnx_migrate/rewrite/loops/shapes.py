"""How many values stand for one in the new text, and which."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.loops.kinds import (
    Kind,
    Many,
    Params,
    State,
    Stats,
    Updates,
    Variables,
    is_special,
)
from nnx_migrate.rewrite.loops.plan import Tree


def width(kind: Kind) -> int:
    """How many values stand for one that a function returns.

    None for what the module holds: running statistics, and a state that the function was given, of
    which only fields with other values are left.
    """
    match kind:
        case Stats() | Updates():
            return 0
        case State(flow=flow, overrides=replaced):
            return len(replaced) if flow.is_parameter else 2 + len(flow.fields)
        case Params(flow=flow) | Variables(flow=flow):
            return 0 if flow.is_parameter else 1
        case Many(items=items):
            return 1 if any(map(width, items)) else 0
    return 1


def is_changed(kind: Kind) -> bool:
    """Whether other values stand for one."""
    match kind:
        case Many(items=items):
            return any(map(is_changed, items))
        case State() | Params() | Variables():
            return True
    return width(kind) != 1


def result_trees(node: ast.expr, kind: Kind) -> list[Tree]:
    """What a function returns in place of ``node``."""
    if not is_changed(kind):
        return [node]
    match kind, node:
        case Many(items=items), ast.Tuple(elts=elements):
            return group([result_trees(e, k) for e, k in zip(elements, items, strict=True)])
        case Many(), _:
            return [node]  # a call that returns it so, or a name that holds it
        case ((State(flow=flow) | Params(flow=flow) | Variables(flow=flow)), _) if not flow.model:
            return [node]  # a call that returns it so
        case State(flow=flow), _:
            every = () if flow.is_parameter else (str(flow.model), flow.optimizer)
            fields = kind.overrides if flow.is_parameter else dict(flow.fields)
            return [*every, *(dict(flow.fields)[one] for one in fields)]
        case (Params(flow=flow) | Variables(flow=flow), _) if not flow.is_parameter:
            return [flow.model]
    return []


def group(parts: list[list[Tree]]) -> list[Tree]:
    """The elements of a tuple together: one of which only one is left is no tuple."""
    found = [one for part in parts for one in part]
    if not found:
        return []
    return found if len(found) == 1 and len(parts) != 1 else [tuple(found)]


__all__ = ["group", "is_changed", "is_special", "result_trees", "width"]
