"""What is asked of abstract values: whether one is None, what it holds, how Linen counts it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Sequence_
from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import (
    STARRED,
    Argument,
    Array,
    Choice,
    ConcatenatedList,
    ExtendedList,
    Instance,
    Library,
    Perhaps,
    Record,
    RepeatedDict,
    RepeatedItem,
    Rounds,
    Sequence,
    Static,
    Submodule,
    Unknown,
    Value,
)


def constant(value: ex.Const) -> Static:
    """A known plain value."""
    return Static(ex.literal(value))


def constant_of(value: Value | None, unknown: ex.Const = None) -> ex.Const:
    """The plain value that this is; ``unknown`` where it is none, or nobody knows."""
    return value.expr.constant if isinstance(value, Static) and value.expr.is_constant else unknown


def is_none(value: Value) -> bool | None:
    """Whether a value is None; None when nobody knows."""
    if isinstance(value, Static):
        return value.expr.constant is None if value.expr.is_constant else None
    if isinstance(value, Argument) and value.present:
        return False
    return None if isinstance(value, Unknown | Argument | Choice) else False


def given_when(value: Value) -> Expr | None:
    """The condition under which a choice is not None; None when nobody knows."""
    match value:
        case Choice(options=(one, other), test=Expr() as test):
            match is_none(one), is_none(other):
                case False, True:
                    return test
                case True, False:
                    return Expr(ast.UnaryOp(ast.Not(), test.node))
    return None


def without_none(value: Value) -> Value:
    """The value where it is known not to be None."""
    if isinstance(value, Argument):
        return replace(value, present=True)
    if isinstance(value, Choice):
        options = [without_none(one) for one in value.options if is_none(one) is not True]
        if len(options) == 1:
            return options[0]
        return Choice(tuple(options)) if options else value
    return value


def is_instance(value: Value, symbol: str | None) -> bool | None:
    """Whether a submodule is an instance of the class ``symbol``; None when nobody knows."""
    if symbol is None:
        return None
    if isinstance(value, Instance):
        return symbol in {one.name for one in value.info.mro}
    if isinstance(value, Submodule) and value.symbol and symbol != "flax.linen.Module":
        return value.symbol == symbol
    return None


def is_scalar(value: Value) -> bool:
    """Whether a value is a plain number: one of a field, or a constant like ``jnp.pi``."""
    if isinstance(value, Library):
        return value.symbol.rpartition(".")[2] in ("pi", "e", "inf", "nan", "euler_gamma")
    return isinstance(value, Static)


def class_name(module: Submodule | Instance) -> str:
    """Class name under which Linen counts a submodule; "" when only known at run time."""
    if isinstance(module, Instance):
        lifted = module.lift
        return "" if lifted is None else f"{lifted}{module.info.node.name}"
    return module.class_name or module.symbol.rpartition(".")[2]


def held_modules(value: Value) -> Iterator[Submodule | Instance]:
    """The modules that a value surely holds, itself or in lists and dicts."""
    match value:
        case Submodule() | Instance():
            yield value
        case Sequence(items=items):
            yield from (one for item in items for one in held_modules(item))
        case RepeatedItem(item=item) | RepeatedDict(each=RepeatedItem(item=item)):
            yield from held_modules(item)
        case ExtendedList(first=first, rest=rest):
            yield from (one for item in (*first, rest) for one in held_modules(item))
        case Rounds(each=each):
            yield from held_modules(each)
        case Perhaps(item=item):
            yield from held_modules(item)
        case ConcatenatedList(parts=parts):
            yield from (one for part in parts for one in held_modules(part))
        case Record(entries=entries):
            yield from (one for item in entries.values() for one in held_modules(item))


def by_position(names: Sequence_[str], args: Sequence_[Value]) -> dict[str, Value]:
    """What a call gives to parameters by their place; starred arguments may be for all that follow."""
    count = args.index(STARRED) if STARRED in args else len(args)
    rest = names[count:] if count < len(args) else ()
    return {**dict(zip(names, args[:count], strict=False)), **dict.fromkeys(rest, STARRED)}


def spelled_out(value: Value, meanings: Mapping[str, Expr]) -> Value:
    """The value with other expressions for some names in its sizes."""
    match value:
        case Array(tail=tail):
            return value.of(tuple(one and ex.substitute(one, meanings) for one in tail))
        case Sequence() if type(value) is Sequence:
            items = tuple(spelled_out(one, meanings) for one in value.items)
            return Sequence(items, value.is_list)
    return value
