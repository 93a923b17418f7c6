"""Where two programs that are not the same part: the first operation that only the first computes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jax.interpreters import mlir

from nnx_migrate.parity.checks.base import few
from nnx_migrate.parity.evaluation.program_features import is_model, join_path
from nnx_migrate.parity.programs.equivalences import RULES, STRUCTURAL
from nnx_migrate.parity.programs.graphs import Reader, Scope, parse
from nnx_migrate.parity.programs.terms import TensorType, Term, Terms
from nnx_migrate.parity.programs.unit_mesh_axes import without_unit_axes

# What jax adds to the name stack of an operation: loops, calls and branches.
_ADDED = re.compile(
    r"jit\(.*\)|while|body|cond|scan|closed_call|checkpoint|remat|rematted_computation|pjit|shard_map"
    r"|custom_[jv][vj]p_call|branch_\d+_fun|eval_jaxpr"
)
_STACK = re.compile(r'loc\("((?:[^"\\]|\\.)*)"')
_RESULT, _PATH = re.compile(r'jax\.result_info = "([^"]*)"'), re.compile(r"\['([^']*)'\]")
_LOOP, _ZEROS = "stablehlo.while", ("0", "0.000000e+00")
_SHOWN = 3  # results of one operation
_FRAME = re.compile(r'(?:"([^"]*)"\()?"([^"]+\.py)":(\d+)')


def first_difference(left: str, right: str) -> str:
    """Say which operation of ``left`` is the first that ``right`` does not compute: module, line, type.

    And which of ``right`` that ``left`` does not, where it is another: an operation that is only there
    shows in ``left`` by what uses its result. Before that, the results that are not the same where
    most are (``of params/head/kernel, ``). Both are StableHLO modules with locations; "" where
    nothing is told. Values are compared as terms, after all rules, so that what is only written
    otherwise does not count.
    """
    if not (left and right):
        return ""
    rules = frozenset((*RULES, *STRUCTURAL))
    with mlir.make_ir_context():
        terms = Terms(dict(RULES))
        modules = [parse(without_unit_axes(one)) for one in (left, right)]
        earlier_terms: set[int] = set()
        found, result_terms = [], []
        for module in (modules[1], *modules):
            reader = _Recorder(terms, rules, module, earlier_terms)
            *_, results, effects = reader.program()
            earlier_terms = reader.made
            found.append(_first(reader.alone, set(terms.reachable((*results, *effects)))))
            result_terms.append(results)
    which = _differing_results(_result_names(left), *result_terms[1:])
    return ", ".join(part for part in (which, _describe(*found[1:])) if part)


def _differing_results(names: Sequence[str], ours: Sequence[int], theirs: Sequence[int]) -> str:
    """Name the results that differ, where they are the lesser part."""
    if not len(names) == len(ours) == len(theirs):
        return ""
    names_apart = [
        name for name, one, other in zip(names, ours, theirs, strict=True) if one != other and name
    ]
    if 2 * len(names_apart) >= len(names) or not names_apart:
        return ""
    return f"of {few(names_apart, _SHOWN)}"


def _result_names(text: str) -> list[str]:
    """What jax notes of every result of a program: the path in what it returns."""
    main = next((line for line in text.splitlines() if " @main(" in line), "")
    _, _, results = main.partition(" -> ")
    paths = (_PATH.findall(one) for one in _RESULT.findall(results))
    return [path[-1] if path else "" for path in paths]


def _describe(ours: _Alone | None, theirs: _Alone | None) -> str:
    if ours is None:
        alone = theirs if theirs is not None and not theirs.follows else None
        return f"from {_place(alone.locations)} on: only NNX has {alone.what}" if alone else ""
    linen_text = f"from {_place(ours.locations)} on: Linen has {ours.what}"
    if theirs is None or _key(theirs) == _key(ours):
        return linen_text
    if ours.what.startswith(_LOOP) and not theirs.follows:  # all of its body is in NNX's
        return f"from {_place(theirs.locations)} on: only NNX has {theirs.what}; {linen_text}"
    return f"{linen_text}, NNX {theirs.what} from {_place(theirs.locations)} on"


def _first(alone: Iterable[_Alone], used: set[int]) -> _Alone | None:
    """The first operation of which the place is known and a value is used; what follows it last."""
    found = sorted(alone, key=lambda one: one.follows)
    return next(
        (one for one in found if not used.isdisjoint(one.values) and _place(one.locations)), None
    )


def _key(one: _Alone) -> tuple[str, str]:
    """The module, whose lines are others on each side, and the operation."""
    return _place(one.locations).partition(" (")[0], one.what


@dataclass
class _Alone:
    """An operation that the other program lacks: ``values`` are its own, or those of the loop around it.

    ``locations`` are those of the calls around it, then its own. It ``follows`` from others where it is
    what jax adds to a loop, or the empty buffer of what a loop keeps: those differ with the body.
    """

    locations: tuple[str, ...]
    what: str
    values: list[int]
    follows: bool


class _Recorder(Reader):
    """Notes the numbers of all values, and the operations whose values are not among ``earlier_terms``."""

    def __init__(
        self, terms: Terms, rules: frozenset[str], module: Any, earlier_terms: Collection[int]
    ) -> None:
        super().__init__(terms, rules, module)
        self.earlier_terms = frozenset(earlier_terms)
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
        if self.earlier_terms.issuperset(results):
            # A loop that is the same is so by what it carries, not by the order of that.
            del self.alone[before:]
        elif operands and not (operation.name == "func.call" and self.alone[before:]):
            follows = _is_of_loop(here[-1]) or self._is_buffer(operation, operands)
            self.alone.append(_Alone(here, _what(operation), results, follows))
        if scope.depth == 0 and operation.name != "func.call":
            for one in self.alone[before:]:
                one.values = results
        return results

    def _argument(self, argument: Any, place: int) -> int:
        """By its name: one that a side has no use for is left out, and moves no other."""
        name = (("name", str(argument.location)),)
        return self._terms.intern(Term("argument", name, (), self._type(argument.type)))

    def _loop_carry(self, types: Sequence[TensorType], initial: tuple[int, ...]) -> list[int]:
        """By what they start from: a loop that carries one value more has the others elsewhere."""
        loop = (("loop", str(self._loops)),)
        alike: Counter[Any] = Counter()
        found = []
        for kind, start in zip(types, initial, strict=True):
            found.append(
                self._terms.intern(Term("carried", loop, (start,), kind, alike[kind, start]))
            )
            alike[kind, start] += 1
        return found

    def _is_buffer(self, operation: Any, operands: tuple[int, ...]) -> bool:
        """Whether an operation fills an array with zeros."""
        of = self._terms[operands[0]]
        is_zero = of.op == "stablehlo.constant" and of.attribute("splat") in _ZEROS
        return bool(operation.name == "stablehlo.broadcast_in_dim") and is_zero


def _what(operation: Any) -> str:
    """``stablehlo.add to tensor<2x3xf32>``."""
    return f"{operation.name} to {few([str(one.type) for one in operation.results], _SHOWN)}"


def _is_of_loop(location: str) -> bool:
    """Whether jax adds the operation to a loop or to what is computed again.

    That is the question before a turn, the parts of stacks, and the mark of what is kept, which rounds to
    the precision that there is.
    """
    found = _STACK.search(location)
    *around, name = found.group(1).split("/") if found else [""]
    is_part = name in ("dynamic_slice", "dynamic_update_slice", "squeeze")
    in_body = not around or around[-2:] == ["while", "body"]
    return name == "reduce_precision" or around[-2:] == ["while", "cond"] or (is_part and in_body)


def _place(locations: tuple[str, ...]) -> str:
    """``Transformer/decoder (layers.py:29 in Layer.__call__)``."""
    module = ""
    for location in locations:
        found = _STACK.search(location)
        parts = found.group(1).split("/")[:-1] if found else []
        inner = join_path("", "/".join(part for part in parts if not _ADDED.fullmatch(part)))
        # A loop's body has its modules' whole path again.
        again = module and f"{inner}/".startswith(f"{module.partition('/')[0]}/")
        module = inner if again else join_path(module, inner)
    lines = [line for location in reversed(locations) for line in _frames(location)]
    lines_text = f"({' from '.join(lines[:2])})" if lines else ""
    return " ".join(part for part in (module, lines_text) if part)


def _frames(location: str) -> Iterator[str]:
    for function, file, line in _FRAME.findall(location):
        if is_model(file):
            yield f"{file.rsplit('/', 1)[-1]}:{line}" + (f" in {function}" if function else "")
