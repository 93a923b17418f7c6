"""Values of Linen's variables for code that takes them as such: what the module holds at this point."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import Kind, Params, Stats, Variables
from nnx_migrate.rewrite.loops.plan import Snapshot


def snapshot(frame: Frame, node: ast.expr, kind: Kind) -> bool:
    """Let ``node`` be the arrays that the module holds; False: it is nothing that they are."""
    if not isinstance(kind, Params | Stats | Variables) or isinstance(kind.flow.model, ast.expr):
        return False
    if isinstance(kind, Stats) and kind.is_updated:
        return False
    if kind.flow.key in frame.owed:
        frame.problem(node, "variables are read before running statistics are kept")
    model = frame.named(node, kind.flow)
    if isinstance(kind, Variables) and isinstance(node, ast.Dict):
        for key, one in zip(node.keys, node.values, strict=True):
            assert isinstance(key, ast.Constant)
            frame.change(one, Snapshot(model, str(key.value)))
    elif isinstance(kind, Variables):
        if kind.collections is not None:
            return False  # a name for some of the collections
        frame.change(node, Snapshot(model))
    else:
        frame.change(node, Snapshot(model, "params" if isinstance(kind, Params) else "batch_stats"))
    return True
