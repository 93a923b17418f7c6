"""Facts of Linen's initial call that the constructor is told about: an argument is given, a flag is set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Argument, Value

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def initial_fact(interpreter: Interpreter, value: Value | None, fact: str) -> Expr | None:
    """The fact of a parameter that the constructor is told about; None for every other value.

    One of which it is not told, and could be, is noted.
    """
    if not isinstance(value, Argument):
        return None
    if value.path in interpreter.extras.facts:
        return ex.call_fact(value.path, fact)
    is_parameter = (
        value.path.isidentifier() and value.path not in interpreter.extras.unpassable_facts
    )
    if interpreter.primary and is_parameter:
        interpreter.untold.add(value.path)
    return None


def is_constructible(interpreter: Interpreter, condition: Expr | None) -> bool:
    """Whether ``__init__`` can test a condition: it is told all the facts that this asks for."""
    return condition is not None and all(
        ex.fact_of(name) is None or ex.input_of(name)[0] in interpreter.extras.facts
        for name in condition.names
    )
