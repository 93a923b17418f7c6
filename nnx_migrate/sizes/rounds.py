"""Whether a loop has a round, as far as fields decide it, and what its rounds go through.

Linen makes no parameters for a layer that only loops without a round call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.questions import held_modules
from nnx_migrate.abstract.values import (
    Argument,
    Array,
    Choice,
    ConcatenatedList,
    ExtendedList,
    Instance,
    Perhaps,
    RepeatedItem,
    Rounds,
    Sequence,
    Static,
    Submodule,
    Value,
)
from nnx_migrate.sizes.frames import Loop
from nnx_migrate.sizes.iteration import Backwards, EnumerateValue, Range, ZipValue, length_of
from nnx_migrate.source.names import defaults_of


def note_rounds(loop: Loop, value: Value, call: ast.FunctionDef | None) -> None:
    """Note it of a loop over ``value``, in what ``call`` runs."""
    loop.has_rounds = _has_rounds(value)
    loop.is_open = _is_open(value) or _is_empty_by_default(value, call)
    loop.submodule_calls = frozenset(id(one.call) for one in _modules_of(value))


def _has_rounds(value: Value) -> Expr | None:
    """What holds where a loop has a round, if fields alone decide that."""
    match value:
        case EnumerateValue(value=inner):
            return _has_rounds(inner)
        case Range(arguments=tuple() as arguments):
            found = _range_goes_on(arguments)
        case Backwards(items=inner):
            return _has_rounds(inner)
        case _:
            count = length_of(value) or ex.literal(1)
            is_sure = count.is_constant and count != ex.literal(0)
            found = None if is_sure else ex.greater(count, ex.literal(0))
    return found if found is not None and not (found.is_constant or found.names) else None


def _is_open(value: Value) -> bool:
    """Whether only the call knows if there is a round.

    An array is taken to have items, and what it is given in place of several arrays; fields say it themselves.
    """
    match value:
        case Static() | Array() | Argument() | ExtendedList():
            return False
        case EnumerateValue(value=inner) | Backwards(items=inner):
            return _is_open(inner)
        case ZipValue(values=values):
            return any(map(_is_open, values))
        case ConcatenatedList(parts=parts):
            return all(map(_is_open, parts))
        case Rounds(each=each):
            return _is_open(each)
        case Range(is_open=is_open):
            return is_open
        case RepeatedItem(is_numbered=is_numbered, length=length):
            return not is_numbered or length is None
        case Sequence(items=items):
            return all(isinstance(one, Perhaps) for one in items)
    return True


def _is_empty_by_default(value: Value, call: ast.FunctionDef | None) -> bool:
    """``for one in more:`` of ``def __call__(self, x, more=()):``."""
    match value:
        case EnumerateValue(value=inner):
            return _is_empty_by_default(inner, call)
        case Argument(path=path) if call is not None:
            return is_empty(defaults_of(call.args).get(path))
    return False


def is_empty(default: ast.expr | None) -> bool:
    """Whether a default gives a loop no round: ``n: int = 0``, ``more=()``."""
    match default:
        case ast.Constant(value=0) | ast.Tuple(elts=[]) | ast.List(elts=[]):
            return True
    return False


def _range_goes_on(arguments: tuple[Expr, ...]) -> Expr | None:
    """What holds where ``range(*arguments)`` has an item; None where it says so itself."""
    if all(one.is_constant for one in arguments):
        return None
    match arguments:
        case [stop]:
            return ex.greater(stop, ex.literal(0))
        case [start, stop]:
            return ex.greater(stop, start)
        case [start, stop, step] if step.is_constant and isinstance(step.constant, int):
            return ex.greater(stop, start) if step.constant > 0 else ex.greater(start, stop)
    return None


def _modules_of(value: Value) -> Iterator[Submodule | Instance]:
    """The modules that the rounds of a loop go through."""
    match value:
        case EnumerateValue(value=inner):
            yield from _modules_of(inner)
        case ZipValue(values=values) | Choice(options=values):
            yield from (module for one in values for module in _modules_of(one))
        case RepeatedItem(item=Choice() as item) | Perhaps(item=Choice() as item):
            yield from _modules_of(item)
        case ExtendedList(first=first, rest=rest):
            yield from (module for one in (*first, rest) for module in _modules_of(one))
        case _:
            yield from held_modules(value)
