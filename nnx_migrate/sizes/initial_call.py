"""Facts of Linen's initial call that the constructor is told about: an argument is given, a flag is set."""

from __future__ import annotations

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Argument, Value


def initial_fact(told: frozenset[str], value: Value | None, fact: str) -> Expr | None:
    """The fact of a parameter that the constructor is told about; None for every other value."""
    if not isinstance(value, Argument) or value.path not in told:
        return None
    return ex.call_fact(value.path, fact)
