"""What conversions take and return, and the reading of a Linen call by Linen's own signature.

A conversion is a pure function from a use of a Linen name to a new node (:class:`Code`) or to a
reason with a manual recipe (:class:`Refusal`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from nnx_migrate.abstract.values import CallForm
from nnx_migrate.edit.calls import Argument, Comments, named
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.data import NewImport
from nnx_migrate.edit.expressions import Expression, ExpressionLike, expression
from nnx_migrate.model import Confidence
from nnx_migrate.source.walking import given_values, has_starred

# Import lines that a file gets for the names in ``Code.imports``.
IMPORTS: Mapping[str, NewImport] = {
    "nnx": NewImport("flax", "nnx"),
    "nnm": NewImport("nnx_migrate", "nn", "nnm"),
    "nnms": NewImport("nnx_migrate", "sharding", "nnms"),
    "jax": NewImport("jax"),
    "jnp": NewImport("jax.numpy", alias="jnp"),
    "functools": NewImport("functools"),
    "flax.core": NewImport("flax.core"),
    "flax.typing": NewImport("flax.typing"),
    "lazy": NewImport("nnx_migrate.linen", "lazy"),
    "lazily": NewImport("nnx_migrate.linen", "lazily"),
    "Module": NewImport("nnx_migrate.linen", "Module"),
    "Size": NewImport("nnx_migrate.linen", "Size"),
    "explicit": NewImport("nnx_migrate.linen", "explicit"),
    "as_lazy": NewImport("nnx_migrate.linen", "as_lazy"),
}

# Fields of every Linen module that say where it hangs, not what it is: the class converter's job.
PLACEMENT = ("parent", "name")


class Context(StrEnum):
    """Where a reference to a Linen name stands."""

    VALUE = "value"  # an argument, a default, an assigned value
    CALL = "call"  # the function of a call
    ANNOTATION = "annotation"
    BASE = "base"  # base class of a class statement
    DECORATOR = "decorator"


@dataclass(frozen=True)
class Code:
    """A new node; ``imports`` are keys of ``IMPORTS``, ``findings`` remarks for people.

    Without a ``node``: a decorator that goes.
    """

    node: Expression | None
    imports: frozenset[str] = frozenset()
    findings: tuple[str, ...] = ()
    confidence: Confidence = Confidence.EXACT


@dataclass(frozen=True)
class Refusal:
    """Why a use is left untouched, and what to write by hand; ``node`` is the place if narrower."""

    reason: str
    recipe: str
    node: ast.AST | None = None

    @property
    def message(self) -> str:
        """Reason and recipe in one line."""
        return f"{self.reason}; {self.recipe}"


class Source(Protocol):
    """Gives the nodes of a file with every edit inside them applied."""

    @property
    def unit(self) -> str:
        """One level of indentation."""

    def render(self, node: ast.AST) -> Any:
        """The node."""

    def argument(self, value: ast.expr, keyword: str | None = None) -> Argument:
        """A value as an argument, with its comments."""

    def keyword(self, one: ast.keyword) -> Argument:
        """A keyword argument, with its comments."""

    def comments(self, value: ast.expr) -> Comments:
        """The comments of the argument that a value is."""


@dataclass(frozen=True)
class LayerCall:
    """A call of a claimed name.

    ``source`` gives the nodes of its arguments. ``sizes`` are the inferred sizes as expression
    texts (``in_features``, ``in_shape``, ``batch_shape``, ...). ``rngs`` is the name of the
    ``nnx.Rngs`` to build from. ``calls`` are the forms in which what is built is called, empty where
    not all calls are in sight. ``is_initializer`` says of an argument that a layer or ``nnx.Param`` calls it
    as initialiser, by position. ``mixes_dtypes`` says, of the whole project, whether arrays may have
    other floating types than float32.
    """

    symbol: str | None
    call: ast.Call
    source: Source
    sizes: Mapping[str, str] = field(default_factory=dict)
    rngs: str = "rngs"
    resolve: Callable[[ast.expr], str | None] = lambda _: None
    is_initializer: bool = False
    calls: frozenset[CallForm] = frozenset()
    mixes_dtypes: Callable[[], bool] = lambda: False

    def size(self, name: str) -> Expression:
        """An inferred size."""
        return expression(self.sizes[name])

    @property
    def streams(self) -> Argument:
        """``rngs=rngs``."""
        return named("rngs", self.rngs)

    def comments_without(self, nodes: Collection[ast.expr]) -> list[str]:
        """Comments of the arguments that are not among ``nodes``."""
        return comments_without(self.source, self.call, nodes)


@dataclass(frozen=True)
class Example:
    """A use of a construct before and after."""

    before: str
    after: str


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call by Linen field name; placement fields are dropped.

    ``open`` says that ``*args`` or ``**kwargs`` pass more than the text shows.
    """

    values: Mapping[str, ast.expr]
    open: bool = False


def linen(*names: str) -> frozenset[str]:
    """Symbols of names of ``flax.linen``."""
    return frozenset(f"flax.linen.{name}" for name in names)


def last(symbol: str) -> str:
    """``Dense`` of ``flax.linen.Dense``."""
    return symbol.rpartition(".")[2]


def bind(call: ast.Call, fields: tuple[str, ...]) -> Arguments | Refusal:
    """Read a call by a Linen dataclass' field order (``parent`` and ``name`` come last in it)."""
    if has_starred(call.args) or any(keyword.arg is None for keyword in call.keywords):
        return Arguments({}, open=True)
    order = (*fields, *PLACEMENT)
    if len(call.args) > len(order):
        return Refusal(
            f"{len(call.args)} positional arguments, Linen takes {len(order)}",
            "remove the extra ones",
            call,
        )
    values = dict(zip(order, call.args, strict=False))
    for keyword in call.keywords:
        assert keyword.arg is not None
        if keyword.arg not in order:
            return Refusal(
                f"unknown argument {keyword.arg!r}",
                f"Linen's arguments here are {', '.join(fields)}",
                keyword,
            )
        if keyword.arg in values:
            return Refusal(
                f"argument {keyword.arg!r} is given twice", "remove one of the two", keyword
            )
        values[keyword.arg] = keyword.value
    return Arguments({k: v for k, v in values.items() if k not in PLACEMENT})


def is_literal(node: ast.expr | None, *values: object) -> bool:
    """Whether ``node`` is a literal constant that is one of ``values`` (by identity of type)."""
    return isinstance(node, ast.Constant) and any(
        node.value is value or (type(node.value) is type(value) and node.value == value)
        for value in values
    )


def same_call(
    function: ExpressionLike,
    call: ast.Call,
    source: Source,
    extra: Sequence[Argument] = (),
    *,
    first: Sequence[Argument] = (),
    keep_placement: bool = False,
    limit: int | None = None,
) -> Expression:
    """The call with its own arguments between ``first`` and ``extra``; comments stay with them.

    ``name`` and ``parent`` are dropped unless ``keep_placement``, also as positional arguments
    beyond the ``limit`` fields a Linen layer has of its own.
    """
    keywords = [one for one in call.keywords if keep_placement or one.arg not in PLACEMENT]
    arguments = [*map(source.argument, call.args[:limit]), *map(source.keyword, keywords)]
    left = comments_without(source, call, [*call.args[:limit], *(one.value for one in keywords)])
    return made_call(function, *first, *arguments, *extra, left=left, unit=source.unit)


def comments_without(source: Source, call: ast.Call, nodes: Collection[ast.expr]) -> list[str]:
    """The comments of the arguments of a call that are not among ``nodes``."""
    values = given_values(call)
    others = [one for one in values if one not in nodes]
    return [comment for one in others for comment in source.comments(one).all]
