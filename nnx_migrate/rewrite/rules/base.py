"""What a rule is: frozen types and the reading of a Linen call by Linen's own signature.

A rule claims symbols (``flax.linen.Dense``) and is a pure function from a use of one to new source
text (:class:`Code`) or to a reason with a manual recipe (:class:`Refusal`). Rules never import
``jax`` or ``flax``: facts about them (which NNX name is the same object) stand in tables that tests
compare with the installed packages.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from nnx_migrate.model import Confidence

# Import lines that a file gets for the names in ``Code.imports``.
IMPORT_LINES: Mapping[str, str] = {
    "nnx": "from flax import nnx",
    "nnm": "from nnx_migrate import nn as nnm",
    "nnms": "from nnx_migrate import sharding as nnms",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "functools": "import functools",
    "flax.core": "import flax.core",
    "flax.typing": "import flax.typing",
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
    """New source text; ``imports`` are keys of ``IMPORT_LINES``, ``findings`` remarks for people."""

    text: str
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


@dataclass(frozen=True)
class LayerCall:
    """A call of a claimed name.

    ``render`` gives the text of an argument with every edit inside it applied. ``sizes`` are the
    inferred sizes as expression texts (``in_features``, ``in_shape``, ``batch_shape``, ...).
    ``rngs`` is the text of the ``nnx.Rngs`` to build from. ``is_sized`` says of a lift that whoever
    constructs the lifted class says how many layers it stacks.
    """

    symbol: str | None
    call: ast.Call
    render: Callable[[ast.AST], str]
    sizes: Mapping[str, str] = field(default_factory=dict)
    rngs: str = "rngs"
    resolve: Callable[[ast.expr], str | None] = lambda _: None
    is_sized: bool = False


@dataclass(frozen=True)
class Example:
    """A use of a construct before and after."""

    before: str
    after: str


@dataclass(frozen=True)
class LayerRule:
    """Built-in Linen layers: their constructor calls, and their names used as values."""

    name: str
    symbols: frozenset[str]
    example: Example
    convert: Callable[[LayerCall], Code | Refusal]
    reference: Callable[[str, Context], Code | Refusal]


@dataclass(frozen=True)
class NameRule:
    """Names that become another name wherever they are loaded; call arguments stay as they are."""

    name: str
    symbols: frozenset[str]
    example: Example
    reference: Callable[[str, Context], Code | Refusal]


@dataclass(frozen=True)
class CallRule:
    """Functions whose calls change more than the function's name."""

    name: str
    symbols: frozenset[str]
    example: Example
    convert: Callable[[LayerCall], Code | Refusal]
    reference: Callable[[str, Context], Code | Refusal]


@dataclass(frozen=True)
class RefusalRule:
    """Names that are not carried over, each with its manual recipe (symbol -> reason, recipe)."""

    name: str
    refusals: Mapping[str, Refusal]
    example: Example

    @property
    def symbols(self) -> frozenset[str]:
        """The names refused."""
        return frozenset(self.refusals)

    def reference(self, symbol: str, context: Context) -> Code | Refusal:
        """The refusal of ``symbol``."""
        return self.refusals[symbol]


Rule = LayerRule | NameRule | CallRule | RefusalRule


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call by Linen field name; placement fields are dropped.

    ``open`` says that ``*args`` or ``**kwargs`` pass more than the text shows.
    """

    given: Mapping[str, ast.expr]
    open: bool = False


def linen(*names: str) -> frozenset[str]:
    """Symbols of names of ``flax.linen``."""
    return frozenset(f"flax.linen.{name}" for name in names)


def last(symbol: str) -> str:
    """``Dense`` of ``flax.linen.Dense``."""
    return symbol.rpartition(".")[2]


def bind(call: ast.Call, fields: tuple[str, ...]) -> Arguments | Refusal:
    """Read a call by a Linen dataclass' field order (``parent`` and ``name`` come last in it)."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    ):
        return Arguments({}, open=True)
    order = (*fields, *PLACEMENT)
    if len(call.args) > len(order):
        return Refusal(
            f"{len(call.args)} positional arguments, Linen takes {len(order)}",
            "remove the extra ones",
            call,
        )
    given = dict(zip(order, call.args, strict=False))
    for keyword in call.keywords:
        assert keyword.arg is not None
        if keyword.arg not in order:
            return Refusal(
                f"unknown argument {keyword.arg!r}",
                f"Linen's arguments here are {', '.join(fields)}",
                keyword,
            )
        if keyword.arg in given:
            return Refusal(
                f"argument {keyword.arg!r} is given twice", "remove one of the two", keyword
            )
        given[keyword.arg] = keyword.value
    return Arguments({k: v for k, v in given.items() if k not in PLACEMENT})


def is_literal(node: ast.expr | None, *values: object) -> bool:
    """Whether ``node`` is a literal constant that is one of ``values`` (by identity of type)."""
    return isinstance(node, ast.Constant) and any(
        node.value is value or (type(node.value) is type(value) and node.value == value)
        for value in values
    )


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
    limit: int | None = None,
) -> str:
    """The call with its own argument texts plus ``extra``.

    ``name`` and ``parent`` are dropped unless ``keep_placement``, also as positional arguments
    beyond the ``limit`` fields a Linen layer has of its own.
    """
    kept = [one for one in call.keywords if keep_placement or one.arg not in PLACEMENT]
    arguments = argument_texts(render, call.args[:limit], kept)
    return f"{function}({', '.join([*arguments, *extra])})"
