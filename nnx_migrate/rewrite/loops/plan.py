"""What becomes of the places of a training loop, as plain data; LibCST is not loaded here."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Ref: TypeAlias = "str | ast.expr"  # a dotted name, or an expression of the old text


@dataclass(frozen=True)
class DottedName:
    """An expression becomes a dotted name."""

    name: str


@dataclass(frozen=True)
class Counter:
    """An expression becomes ``optimizer.step[...]``."""

    optimizer: str


@dataclass(frozen=True)
class Snapshot:
    """An expression becomes ``nnm.variables_of(model)``, or a collection of it."""

    model: str
    collection: str = ""


@dataclass(frozen=True)
class Construction:
    """``definition.init(key, ...)`` becomes ``explicit(definition, ..., rngs=key)``.

    If it is compiled (``is_compiled``) by ``jax.jit(definition.init)``, so is ``explicit``.
    """

    is_compiled: bool = False


@dataclass(frozen=True)
class IndexChange:
    """``value[index]`` gets another index, or becomes ``value``."""

    index: int | None


@dataclass(frozen=True)
class ModelCall:
    """A call of ``apply`` becomes one of the module.

    Attributes:
      model: the module.
      without: keywords that go.
      method: the method that is called.
      with_keys: whether streams draw Linen's keys (``nnm.call``).
    """

    model: Ref
    without: frozenset[str]
    method: str | None = None
    with_keys: bool = False


@dataclass(frozen=True)
class Arguments:
    """Arguments of a call become others: by the ``id`` of their value, keyword and name of each."""

    replacements: Mapping[int, tuple[tuple[str | None, str], ...]]


@dataclass(frozen=True)
class Without:
    """A call loses keyword arguments."""

    keywords: frozenset[str]


@dataclass(frozen=True)
class Places:
    """Positions of arguments (``static_argnums``) become others."""

    numbers: tuple[int, ...]
    is_tuple: bool


@dataclass(frozen=True)
class Signature:
    """Parameters of a function become others: by name, the new ones with their annotations."""

    parameters: Mapping[str, tuple[tuple[str, str], ...]]
    drops_result: bool  # whether the annotation of what it returns goes


@dataclass(frozen=True)
class NewModel:
    """``name = <expression>``: the module is built."""

    name: str
    value: ast.expr


@dataclass(frozen=True)
class NewOptimizer:
    """``name = nnx.Optimizer(model, tx, wrt=nnx.Param)``."""

    name: str
    model: str
    tx: ast.expr


@dataclass(frozen=True)
class NewValues:
    """``a, b = <expressions>``: fields of the state; a call alone where it gives none of them."""

    names: tuple[str, ...]
    values: tuple[ast.expr, ...]


@dataclass(frozen=True)
class OptimizerUpdate:
    """``optimizer.update(model, grads)``."""

    optimizer: str
    model: str
    grads: ast.expr


Line: TypeAlias = NewModel | NewOptimizer | NewValues | OptimizerUpdate
# What stands in a target or result: an old expression, a new one, several.
Tree: TypeAlias = "ast.expr | str | tuple[Tree, ...]"


@dataclass(frozen=True)
class Statement:
    """An assignment or expression: lines before it, what is assigned to, and what.

    Without a ``value`` only the lines are left; without a ``target`` the value alone.
    """

    before: tuple[Line, ...] = ()
    target: Tree | None = None
    value: Tree | None = None


@dataclass(frozen=True)
class Result:
    """``return``: lines before it, and what is returned; ``is_last`` where nothing follows."""

    before: tuple[Line, ...] = ()
    value: Tree | None = None
    is_last: bool = False


Change: TypeAlias = (
    DottedName
    | Counter
    | Snapshot
    | Construction
    | IndexChange
    | ModelCall
    | Arguments
    | Without
    | Places
    | Signature
    | Statement
    | Result
)
