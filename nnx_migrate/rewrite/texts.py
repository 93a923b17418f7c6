"""Calls as texts, for the parts that still write text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from nnx_migrate.constructs.base import PLACEMENT


def argument_texts(
    render: Callable[[ast.AST], str], args: Sequence[ast.AST], keywords: Sequence[ast.keyword]
) -> list[str]:
    """The texts of a call's arguments; ``**given`` stays what it is."""
    named = [
        f"**{render(one.value)}" if one.arg is None else f"{one.arg}={render(one.value)}"
        for one in keywords
    ]
    return [*map(render, args), *named]


def same_call(
    function: str,
    call: ast.Call,
    render: Callable[[ast.AST], str],
    extra: Sequence[str] = (),
    *,
    keep_placement: bool = False,
) -> str:
    """The call with its own argument texts plus ``extra``; ``name`` and ``parent`` are dropped."""
    kept = [one for one in call.keywords if keep_placement or one.arg not in PLACEMENT]
    return f"{function}({', '.join([*argument_texts(render, call.args, kept), *extra])})"
