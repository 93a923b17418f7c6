"""What values of a training program are, as far as its loop is concerned.

A *flow* is one model on its way through a function: the parameters, the optimizer's state and the
running statistics that Linen hands on as values, and NNX changes in place.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TypeAlias

Recipe: TypeAlias = tuple[str, ...] | None  # what a module is built of; None: not known


@dataclass(frozen=True)
class Flow:
    """One model in one function.

    Attributes:
      key: the variable or parameter that it is known by.
      is_parameter: whether it is a parameter of the function (or of one around it).
      model: the name of the module in the new text, or the expression that builds it.
      optimizer: the name of its optimizer in the new text.
      recipe: what the module is built of.
      stats: fields of the state that hold running statistics.
      fields: its other fields, which no update replaces, and the variables that hold them.
      applies: whether the state's ``apply_fn`` is that of this module.
      whole: whether the state's parameters are Linen's variables as ``init`` gives them.
      owner: the id of the function, as soon as it has a name there.
    """

    key: str
    is_parameter: bool
    model: str | ast.expr
    optimizer: str = ""
    recipe: Recipe = None
    stats: frozenset[str] = frozenset()
    fields: tuple[tuple[str, str], ...] = ()
    applies: bool = True
    whole: bool = False
    owner: int = 0


@dataclass(frozen=True)
class Plain:
    """Anything else."""


@dataclass(frozen=True)
class Unknown:
    """What was not come to yet: it may turn out to be anything."""


@dataclass(frozen=True)
class Unsure:
    """One of several kinds, or what the reason says: it must not be read."""

    reason: str


@dataclass(frozen=True)
class Variables:
    """Linen's variables: the collections that are among them."""

    flow: Flow
    collections: frozenset[str] | None = None  # None: all


@dataclass(frozen=True)
class Params:
    """The parameters of a model."""

    flow: Flow


@dataclass(frozen=True)
class Stats:
    """Running statistics of a model; ``is_updated``: a call that they are kept from updates them."""

    flow: Flow
    is_updated: bool = False


@dataclass(frozen=True)
class Updates:
    """What ``apply(mutable=...)`` gives beside the output."""

    flow: Flow


@dataclass(frozen=True)
class State:
    """A ``TrainState``; ``overrides`` are fields whose values a call gives beside it."""

    flow: Flow
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """How many updates there were."""

    flow: Flow


@dataclass(frozen=True)
class Grads:
    """Gradients of a model's parameters."""


@dataclass(frozen=True)
class Definition:
    """A module that is built when Linen's calls come: ``lazy(Class)(...)``."""

    recipe: Recipe


@dataclass(frozen=True)
class ApplyFn:
    """``model.apply`` of a module of this recipe, or of the one in the flow."""

    recipe: Recipe
    flow: Flow | None = None


@dataclass(frozen=True)
class Many:
    """A tuple that is written out."""

    items: tuple[Kind, ...]


@dataclass(frozen=True)
class Transformation:
    """An optimizer of optax; ``depends_on_order``: it adds numbers of different parameters."""

    depends_on_order: bool = False


@dataclass(frozen=True)
class Function:
    """A function of the project; ``bound`` are keywords that ``functools.partial`` gives it."""

    node: int  # id of its definition
    bound: frozenset[str] = frozenset()
    is_compiled: bool = False


@dataclass(frozen=True)
class Gradient:
    """``jax.grad`` or ``jax.value_and_grad`` of a function, or of a lambda that is called right there."""

    function: Function | ast.Lambda
    place: int  # id of the call that makes it
    with_value: bool
    has_aux: bool


Kind: TypeAlias = (
    Plain
    | Unknown
    | Unsure
    | Variables
    | Params
    | Stats
    | Updates
    | State
    | Step
    | Grads
    | ApplyFn
    | Definition
    | Many
    | Transformation
    | Function
    | Gradient
)
OfFlow: TypeAlias = Variables | Params | Stats | Updates | State | Step
PLAIN, UNKNOWN = Plain(), Unknown()
_SOFT = (Plain, Unknown, Definition, Transformation, Function, Gradient)


def is_special(kind: Kind) -> bool:
    """Whether a value must not meet code that does not know what becomes of it."""
    if isinstance(kind, Many):
        return any(map(is_special, kind.items))
    return not isinstance(kind, _SOFT)


def outside(flow: Flow, key: str = "") -> Flow:
    """A flow as another function sees it, by the name of a parameter there or as something new."""
    fields = tuple((name, "") for name, _ in flow.fields)
    return replace(
        flow, key=key, is_parameter=bool(key), model="", optimizer="", fields=fields, owner=0
    )


def with_flow(kind: Kind, flow: Flow) -> Kind:
    """The same of another flow."""
    return replace(kind, flow=flow) if isinstance(kind, OfFlow) else kind


def flows_of(kind: Kind) -> tuple[Flow, ...]:
    """The flows that a value is part of."""
    if isinstance(kind, Many):
        return tuple(flow for one in kind.items for flow in flows_of(one))
    return (kind.flow,) if isinstance(kind, OfFlow) else ()


def functions_of(kind: Kind) -> tuple[int, ...]:
    """The functions of the project that a value is, or calls."""
    match kind:
        case Function(node=node) | Gradient(function=Function(node=node)):
            return (node,)
        case Many(items=items):
            return tuple(one for item in items for one in functions_of(item))
    return ()


def holds_updates(kind: Kind) -> bool:
    """Whether running statistics that the state has to keep are part of a value."""
    if isinstance(kind, Many):
        return any(map(holds_updates, kind.items))
    return isinstance(kind, Updates)


def together(kinds: tuple[Kind, ...]) -> Kind:
    """A tuple of values."""
    return PLAIN if all(one == PLAIN for one in kinds) else Many(kinds)


def join(one: Kind | None, other: Kind | None) -> Kind | None:
    """What a value is that is the one or the other; None is what was not seen yet."""
    if one is None or one in (UNKNOWN, other):
        return one if other is None else other
    if other is None or other == UNKNOWN:
        return one
    match one, other:
        case Transformation(), Transformation():
            return Transformation(one.depends_on_order or other.depends_on_order)
        case Many(items=a), Many(items=b) if len(a) == len(b):
            return Many(tuple(join(x, y) or PLAIN for x, y in zip(a, b, strict=True)))
        case (State() | Params() | Variables(), _) if type(one) is type(other):
            flows = one.flow, other.flow
            recipe = flows[0].recipe if flows[0].recipe == flows[1].recipe else None
            if replace(flows[0], recipe=recipe) == replace(flows[1], recipe=recipe):
                return with_flow(one, replace(flows[0], recipe=recipe))
    if not is_special(one) and not is_special(other):
        return PLAIN
    return Unsure("it is not the same in all calls or branches")
