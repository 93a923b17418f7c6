"""Calls of code that knows nothing of flows."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import PLAIN, Grads, Kind, State, is_special
from nnx_migrate.rewrite.loops.snapshots import snapshot
from nnx_migrate.source.walking import given_values


def read_unknown(frame: Frame, node: ast.Call, symbol: str) -> Kind:
    """What a call gives: it takes values, and no part of a flow but as those."""
    for one in given_values(node):
        value = one.value if isinstance(one, ast.Starred) else one
        kind = frame.value(frame, value)
        frame.escape(value, kind)
        if is_special(kind) and not snapshot(frame, value, kind):
            name = symbol or ast.unparse(node.func)
            frame.problem(one, f"{_word(kind)} handed to {name}, which is not known")
    return PLAIN


def _word(kind: Kind) -> str:
    words = {State: "the state is", Grads: "gradients are"}
    return next((word for one, word in words.items() if isinstance(kind, one)), "part of it is")
