"""One call of a library function, and how summaries read its arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.questions import constant_of, is_none
from nnx_migrate.abstract.values import Array, Static, Value
from nnx_migrate.sizes.frames import Frame

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


Dim = Expr | None


@dataclass(frozen=True)
class LibraryCall:
    """One call of a library function; ``bound`` are its arguments where the summary declares its parameters."""

    interpreter: Interpreter
    symbol: str
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    node: ast.Call
    frame: Frame
    bound: Mapping[str, Value] | None = None

    def get(self, index: int, name: str) -> Value | None:
        """Argument by position or name."""
        if self.bound is not None:
            return self.bound.get(name)
        return self.args[index] if index < len(self.args) else self.kwargs.get(name)

    def array(self, index: int = 0, name: str = "a") -> Array | None:
        """Argument as an array."""
        return self.interpreter.array(self.get(index, name))

    def number(self, index: int, name: str, default: int | None = None) -> int | None:
        """Argument as a known integer."""
        value = self.get(index, name)
        if value is None:
            return default
        constant = constant_of(value)
        return constant if isinstance(constant, int) else None

    def numbers(self, index: int, name: str) -> tuple[int, ...] | None:
        """Argument as known integers."""
        value = self.get(index, name)
        sizes = shapes.shape_of(value) if value is not None else None
        if sizes is None or any(s is None or not s.is_constant for s in sizes):
            return None
        found = [s.constant for s in sizes if s]
        whole = tuple(n for n in found if isinstance(n, int))
        return whole if len(whole) == len(found) else None

    def flag(self, index: int, name: str) -> bool | None:
        """Argument as a truth value that is False where left out; None where nobody knows it."""
        value = self.get(index, name)
        if value is None:
            return False
        known = isinstance(value, Static) and value.expr.is_constant
        return bool(value.expr.constant) if known and isinstance(value, Static) else None

    def is_given(self, index: int, name: str) -> bool:
        """Whether an argument is given, and not just as None."""
        value = self.get(index, name)
        return value is not None and is_none(value) is not True

    def behind(self, array: Array, axis: int, more: int = 0) -> Array:
        """The array after something happened at ``axis`` of it, of unknown rank."""
        return self.interpreter.ranks.behind(array, axis, more)

    def want_rank(self, array: Array | None) -> None:
        """Note that more would be known of the result if the array's rank were."""
        self.interpreter.ranks.lacks_ranks |= array is not None and array.rank is None


Summary = Callable[[LibraryCall], Value]
Summaries = dict[str, Summary]
