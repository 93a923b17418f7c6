"""Check ``program``: whether both sides lower to the same StableHLO, as text or by rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nnx_migrate.parity.checks.base import check_of, few
from nnx_migrate.parity.checks.first_difference import first_difference
from nnx_migrate.parity.evaluation.program_features import ProgramFeature
from nnx_migrate.parity.evaluation.results import SideResult
from nnx_migrate.parity.evaluation.shardings import show
from nnx_migrate.parity.programs import canonical, graphs
from nnx_migrate.parity.programs.equivalences import WITHOUT_MARKS, WITHOUT_PRECISIONS
from nnx_migrate.parity.programs.unit_mesh_axes import without_unit_axes
from nnx_migrate.parity.report import Check

_PLACES = 3
# Linen's init calls the model, NNX builds it: what a call says beside numbers is no part of it.
INIT = "init"
# What is said of programs that are the same without these.
_ELSEWHERE = (
    (WITHOUT_MARKS, "constraints or barriers are on other values, or in another order"),
    (WITHOUT_PRECISIONS, "precisions are those of other products"),
)


@dataclass(frozen=True)
class Programs:
    """How far the programs agree: ``same`` text, the rules needed, or where they part.

    ``hidden_lines`` are the differences of those that part which no number can show. ``units`` are the mesh
    axes of size 1 that Linen's constraints name where NNX's name none.
    """

    same: bool
    rules: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    hidden_lines: tuple[str, ...] = ()
    units: tuple[str, ...] = ()


def agreement(linen: SideResult, nnx: SideResult) -> Programs:
    """Compare the programs that both sides have."""
    rules: list[str] = []
    parts: list[str] = []
    hidden_lines: list[str] = []
    units: list[str] = []
    for name in sorted(linen.programs.keys() & nnx.programs.keys()):
        ours, theirs = linen.programs[name], nnx.programs[name]
        sides = linen.features.get(name, ()), nnx.features.get(name, ())
        hidden_lines += [] if name == INIT else _spec_axis_differences(*sides)
        if ours == theirs:
            continue
        try:
            rule_names = graphs.equal_by_rules(ours, theirs)
        except ValueError as error:
            parts.append(f"{name}: {' '.join(str(error).split())[:300]}")
            continue
        if rule_names is None:
            parts.append(f"{name}: {_where(name, linen, nnx)}")
            hidden_lines += [] if name == INIT else _hidden_differences(name, linen, nnx)
        else:
            rules += [rule for rule in rule_names if rule not in rules]
        if name != INIT:
            hidden_lines += _unit_axis_differences(*sides)
            units += _axes_left_out(*sides)
    hidden_lines = list(dict.fromkeys(hidden_lines))
    return Programs(
        not rules and not parts,
        tuple(rules),
        tuple(parts),
        tuple(hidden_lines),
        tuple(dict.fromkeys(units)),
    )


def _where(name: str, linen: SideResult, nnx: SideResult) -> str:
    """Where the programs part, in the model if that is known."""
    array_names = few(nnx.plain_arrays, _PLACES)
    prefix = (
        f"NNX keeps arrays of its constructor that are no variables: {array_names}; "
        if array_names
        else ""
    )
    place = first_difference(linen.debug_programs.get(name, ""), nnx.debug_programs.get(name, ""))
    if place:
        return prefix + place
    sides = (without_unit_axes(side.programs[name]) for side in (linen, nnx))
    return prefix + canonical.first_line_apart(*sides)


def _hidden_differences(name: str, linen: SideResult, nnx: SideResult) -> list[str]:
    """What numbers cannot show of two programs that part: lost, added, or on other values."""
    ours, theirs = linen.features.get(name, ()), nnx.features.get(name, ())
    found = [*_alone(ours, theirs, "lost"), *_alone(theirs, ours, "only in NNX")]
    texts = linen.programs[name], nnx.programs[name]
    for without, line in () if found else _ELSEWHERE:
        if graphs.same_but(*texts, without):
            return [f"{name}: {line}{_first_place(ours, theirs)}"]
    return found


def _unit_axis_differences(
    ours: Sequence[ProgramFeature], theirs: Sequence[ProgramFeature]
) -> Iterator[str]:
    """Yield what differs only in mesh axes of size 1, among what is there on both sides.

    NNX may leave them all out, as ``nnx_migrate.sharding`` does; one that names others than Linen was
    given other logical names.
    """
    mine, others = ([one for one in side if one.units] for side in (ours, theirs))
    linen_counts = Counter(map(_key, ours))
    more = Counter(map(_whole, others)) - Counter(map(_whole, mine))
    keys = {_key(one) for one in others if _whole(one) in more and _key(one) in linen_counts}
    yield from _alone([one for one in mine if _key(one) in keys], others, "lost", _whole)
    yield from _alone([one for one in others if _key(one) in keys], mine, "only in NNX", _whole)


def _spec_axis_differences(
    ours: Sequence[ProgramFeature], theirs: Sequence[ProgramFeature]
) -> Iterator[str]:
    """Yield the constraints whose logical names stand for other mesh axes of size 1 than Linen's.

    Which of several that look the same stands for which, and in which dimension, is not compared.
    """
    unknown = {_key(one) for one in (*ours, *theirs) if one.spec_axes is None}
    common_keys = {_key(one) for one in theirs} - unknown
    for key in dict.fromkeys(_key(one) for one in ours if _key(one) in common_keys):
        mine, others = ([one for one in side if _key(one) == key] for side in (ours, theirs))
        left, right = (
            {axis for one in side for axis in one.spec_axes or ()} for side in (mine, others)
        )
        if left != right:
            places = list(dict.fromkeys(one.place for one in others if one.place))
            where = f": {few(places, _PLACES, between='; ', more='more places')}" if places else ""
            named = (", ".join(sorted(axes)) or "none" for axes in (left, right))
            yield "{} over mesh axes of size 1: Linen {}, NNX {}{}".format(key, *named, where)


def _axes_left_out(
    ours: Sequence[ProgramFeature], theirs: Sequence[ProgramFeature]
) -> Iterator[str]:
    """The mesh axes of size 1 that Linen names where NNX names none."""
    mine, others = (Counter(_key(one) for one in side if not one.units) for side in (ours, theirs))
    bare = others - mine
    named = (one.units for one in ours if _key(one) in bare)
    return (axis for units in named for axes in units for axis in axes)


def _key(one: ProgramFeature) -> str:
    return f"{one.kind} {one.what}"


def _whole(one: ProgramFeature) -> str:
    return f"{_key(one)} with {show(one.units)} of size 1" if one.units else _key(one)


def _alone(
    ours: Sequence[ProgramFeature],
    theirs: Sequence[ProgramFeature],
    word: str,
    key: Callable[[ProgramFeature], str] = _key,
) -> Iterator[str]:
    """Yield one line per kind of operation that the first side has more often."""
    mine, others = (Counter(map(key, side)) for side in (ours, theirs))
    for what, count in (mine - others).items():
        places = _places(
            [one for one in ours if key(one) == what],
            [one for one in theirs if key(one) == what],
            count,
        )
        yield f"{what} {word}{places}"


def _first_place(ours: Sequence[ProgramFeature], theirs: Sequence[ProgramFeature]) -> str:
    """The first operation whose lines have no counterpart of the same text."""

    def line_texts(one: ProgramFeature) -> tuple[str, ...]:
        return tuple(text for _, text in one.lines)

    alone = Counter(map(line_texts, ours)) - Counter(map(line_texts, theirs))
    place = next((one.place for one in ours if line_texts(one) in alone), "")
    return f": {place}" if place else ""


def _places(ours: Sequence[ProgramFeature], theirs: Sequence[ProgramFeature], count: int) -> str:
    """Where the ones without a counterpart are, by the text of their lines; else where any is.

    The outer line first: the inner one is often that of a function which adds every constraint.
    """
    found = list(ours)
    for line in (-1, 0):
        texts = Counter(one.text(line) for one in ours) - Counter(one.text(line) for one in theirs)
        alone = [one for one in ours if one.text(line) in texts]
        if sum(texts.values()) == count and len(alone) < len(found):
            found = alone
    names = list(dict.fromkeys(one.place for one in found if one.place))
    sure = len(found) == count or len({one.place for one in found}) == 1
    names_text = few(names, _PLACES, between="; ", more="more places")
    return f": {'' if sure else 'one of '}{names_text}" if names else ""


def program(linen: SideResult, nnx: SideResult, result: Programs) -> Check:
    """The check of what was found; programs that compute otherwise are for the verdict to judge."""
    failures = [
        f"{name}: there is no NNX program to compare with"
        for name in linen.programs
        if name not in nnx.programs
    ]
    if linen.eager_reason:
        return Check("program", "not_run", 0, (linen.eager_reason,))
    if not linen.programs:
        failures.append("nothing was compared")
    # What is sure first; with "one of" only the kind is known.
    failures += sorted(result.hidden_lines, key=lambda line: ": one of " in line)
    leaves = len(linen.programs.keys() & nnx.programs.keys())
    notes = [f"not the same program: {line}" for line in result.parts]
    notes += [f"the same by {', '.join(result.rules)}"] if result.rules else []
    return check_of("program", leaves, failures, notes)
