"""What a call of a layer shows: the sizes that its constructor needs, and the shape that comes out.

A shape rule is a function from a :class:`ShapeCall` to an :data:`Outcome`; each layer has its own in
its construct's file. Sizes are named as the conversions expect them (``in_features``, ...); None is a
size that the call asks for and does not show.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import (
    Array,
    Instance,
    RepeatedItem,
    Static,
    Submodule,
    Unknown,
    Value,
)

Sizes = dict[str, Expr | None]
Outcome = tuple[Sizes, Value]


class Analysis(Protocol):
    """What a shape rule asks of the analysis that runs it."""

    root: Instance

    def array(self, value: Value | None) -> Array | None:
        """A value as an array, with what is known of its rank."""

    def single(self, value: Value) -> Value:
        """A value, which nobody knows where fields may hold several numbers for it."""

    def prove(
        self,
        array: Array | None,
        *,
        least: int = 0,
        exact: int | None = None,
        usual: int | None = None,
    ) -> None:
        """Note how many axes an array has."""

    def ask(self, node: ast.AST, text: str) -> None:
        """Note what a person should look at."""

    def call_value(
        self, target: Value, args: tuple[Value, ...], kwargs: dict[str, Value], node: ast.Call
    ) -> Value:
        """The result of calling another layer."""

    def under(self, condition: Expr | None) -> AbstractContextManager[None]:
        """What happens only where a condition holds; None: one that nobody knows."""

    def call_in_turn(self, rounds: RepeatedItem, value: Value, layer: Submodule) -> Value:
        """What ``layer`` makes of a value that the layers of each round take one after the other.

        Args:
          rounds: its item is the `Sequence` of one round's layers.
        """


@dataclass(frozen=True)
class ShapeCall:
    """One call of a built-in layer."""

    analysis: Analysis
    layer: Submodule
    args: tuple[Value, ...]
    kwargs: dict[str, Value]

    def field(self, name: str) -> Value:
        """Constructor field as given; Unknown when left out."""
        return self.layer.arguments.get(name, Unknown("left out"))

    def size(self, name: str) -> Expr | None:
        """Constructor field that is a size."""
        value = self.field(name)
        return value.expr if isinstance(value, Static) else None

    def array(self, index: int = 0, name: str = "inputs") -> Array | None:
        """Call argument as an array."""
        value = self.args[index] if index < len(self.args) else self.kwargs.get(name)
        return self.analysis.array(value)

    @property
    def first(self) -> Array | None:
        """The input."""
        names = ("inputs", "x", "inputs_q", "query")
        return self.array(0, next((name for name in names if name in self.kwargs), "inputs"))


Shape = Callable[[ShapeCall], Outcome]


def opaque(call: ShapeCall) -> Outcome:
    """Nothing is known."""
    return {}, Unknown(f"{call.layer.symbol} is not modelled")


def same(call: ShapeCall) -> Outcome:
    """No size is needed, and the shape stays."""
    return {}, call.first or Unknown("input unknown")


def together(sizes: Sequence[Expr | None]) -> Expr | None:
    """Several sizes as one: a tuple, where all are known and they are more than one."""
    if any(size is None for size in sizes):
        return None
    nodes = [size.node for size in sizes if size]
    return Expr(nodes[0]) if len(nodes) == 1 else Expr(ast.Tuple(nodes, ast.Load()))
