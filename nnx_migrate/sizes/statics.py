"""Abstract values that ``__init__`` can write down."""

from __future__ import annotations

import ast

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Sequence, Static, Unknown, Value


def static_of(value: Value) -> Expr | None:
    """Expression of a static value; a tuple of static values is one too."""
    if isinstance(value, Static):
        return value.expr
    if isinstance(value, Sequence):
        parts = [static_of(item) for item in value.items]
        if all(part is not None for part in parts):
            nodes = [part.node for part in parts if part]
            make = ast.List if value.is_list else ast.Tuple
            return Expr(make(nodes, ast.Load()))
    return None


def axis_value(size: Expr | None) -> Value:
    """The size of an axis as a value."""
    return Static(size) if size else Unknown("size unknown", is_size=True)
