"""Where two programs that are not the same part: the first operation that only the first computes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jax.interpreters import mlir

from nnx_migrate.parity.evaluation.unseen import is_model, joined
from nnx_migrate.parity.programs.equivalences import RULES, STRUCTURAL
from nnx_migrate.parity.programs.graphs import Reader, Scope, parse
from nnx_migrate.parity.programs.terms import Terms
from nnx_migrate.parity.programs.unit_mesh_axes import without_unit_axes

# What jax adds to the name stack of an operation: loops, calls and branches.
_ADDED = re.compile(
    r"jit\(.*\)|while|body|cond|scan|closed_call|checkpoint|remat|rematted_computation|pjit|shard_map"
    r"|custom_[jv][vj]p_call|branch_\d+_fun|eval_jaxpr"
)
_STACK = re.compile(r'loc\("((?:[^"\\]|\\.)*)"')
_FRAME = re.compile(r'(?:"([^"]*)"\()?"([^"]+\.py)":(\d+)')


def first_apart(left: str, right: str) -> str:
    """Say which operation of ``left`` is the first that ``right`` does not compute: module, line, type.

    And which of ``right`` that ``left`` does not, where it is another: an operation that is only there
    shows in ``left`` by what uses its result. Both are StableHLO modules with locations; "" where
    nothing is told. Values are compared as terms, after all rules, so that what is only written
    otherwise does not count.
    """
    if not (left and right):
        return ""
    rules = frozenset((*RULES, *STRUCTURAL))
    with mlir.make_ir_context():
        terms = Terms(dict(RULES))
        modules = [parse(without_unit_axes(one)) for one in (left, right)]
        known: set[int] = set()
        found = []
        for module in (modules[1], *modules):
            reader = _Recorder(terms, rules, module, known)
            *_, results, effects = reader.program()
            known = reader.made
            found.append(_first(reader.alone, set(terms.reachable((*results, *effects)))))
    _, ours, theirs = found
    if ours is None:
        return ""
    told = f"from {_place(ours.locations)} on: Linen has {ours.what}"
    if theirs is None or _key(theirs) == _key(ours):
        return told
    return f"{told}, NNX {theirs.what} from {_place(theirs.locations)} on"


def _first(alone: Iterable[_Alone], used: set[int]) -> _Alone | None:
    """The first operation of which the place is known and a value is used."""
    return next(
        (one for one in alone if _place(one.locations) and not used.isdisjoint(one.values)), None
    )


def _key(one: _Alone) -> tuple[str, str]:
    """The module, whose lines are others on each side, and the operation."""
    return _place(one.locations).partition(" (")[0], one.what


@dataclass
class _Alone:
    """An operation that the other program lacks: ``values`` are its own, or those of the loop around it.

    ``locations`` are those of the calls around it, then its own.
    """

    locations: tuple[str, ...]
    what: str
    values: list[int]


class _Recorder(Reader):
    """Notes the numbers of all values, and the operations whose values are not ``known``."""

    def __init__(
        self, terms: Terms, rules: frozenset[str], module: Any, known: Collection[int]
    ) -> None:
        super().__init__(terms, rules, module)
        self.known = frozenset(known)
        self.made: set[int] = set()
        self.alone: list[_Alone] = []
        self._around: tuple[str, ...] = ()

    def _operation(self, operation: Any, operands: tuple[int, ...], scope: Scope) -> list[int]:
        around, before = self._around, len(self.alone)
        here = (*around, str(operation.location))
        self._around = here
        results = super()._operation(operation, operands, scope)
        self._around = around
        self.made.update(results)
        if self.known.issuperset(results):
            # A loop that is the same is so by what it carries, not by the order of that.
            del self.alone[before:]
        elif operands:
            types = ", ".join(str(result.type) for result in operation.results)
            self.alone.append(_Alone(here, f"{operation.name} to {types}", results))
        if scope.depth == 0 and operation.name != "func.call":
            for one in self.alone[before:]:
                one.values = results
        return results


def _place(locations: tuple[str, ...]) -> str:
    """``Transformer/decoder (layers.py:29 in Layer.__call__)``."""
    module = ""
    for location in locations:
        found = _STACK.search(location)
        parts = found.group(1).split("/")[:-1] if found else []
        inner = joined("", "/".join(part for part in parts if not _ADDED.fullmatch(part)))
        # A loop's body has its modules' whole path again.
        again = module and f"{inner}/".startswith(f"{module.partition('/')[0]}/")
        module = inner if again else joined(module, inner)
    lines = [line for location in reversed(locations) for line in _frames(location)]
    shown = f"({' from '.join(lines[:2])})" if lines else ""
    return " ".join(part for part in (module, shown) if part)


def _frames(location: str) -> Iterator[str]:
    for function, file, line in _FRAME.findall(location):
        if is_model(file):
            yield f"{file.rsplit('/', 1)[-1]}:{line}" + (f" in {function}" if function else "")
