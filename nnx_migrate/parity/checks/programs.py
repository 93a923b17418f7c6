"""Check ``program``: whether both sides lower to the same StableHLO, as text or by rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nnx_migrate.parity.checks.apart import first_apart
from nnx_migrate.parity.checks.base import checked
from nnx_migrate.parity.evaluation.results import SideResult
from nnx_migrate.parity.evaluation.unseen import Unseen
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

    ``unseen`` are the differences of those that part which no number can show.
    """

    same: bool
    rules: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


def agreement(linen: SideResult, nnx: SideResult) -> Programs:
    """Compare the programs that both sides have."""
    rules: list[str] = []
    parts: list[str] = []
    unseen: list[str] = []
    for name in sorted(linen.programs.keys() & nnx.programs.keys()):
        ours, theirs = linen.programs[name], nnx.programs[name]
        if ours == theirs:
            continue
        try:
            needed = graphs.equal_by_rules(ours, theirs)
        except ValueError as error:
            parts.append(f"{name}: {' '.join(str(error).split())[:300]}")
            continue
        if needed is None:
            parts.append(f"{name}: {_where(name, linen, nnx)}")
            unseen += [] if name == INIT else _unseen(name, linen, nnx)
        else:
            rules += [rule for rule in needed if rule not in rules]
    unseen = list(dict.fromkeys(unseen))
    return Programs(not rules and not parts, tuple(rules), tuple(parts), tuple(unseen))


def _where(name: str, linen: SideResult, nnx: SideResult) -> str:
    """Where the programs part, in the model if that is known."""
    place = first_apart(linen.located.get(name, ""), nnx.located.get(name, ""))
    if place:
        return place
    sides = (without_unit_axes(side.programs[name]) for side in (linen, nnx))
    return canonical.first_line_apart(*sides)


def _unseen(name: str, linen: SideResult, nnx: SideResult) -> list[str]:
    """What numbers cannot show of two programs that part: lost, added, or on other values."""
    ours, theirs = linen.unseen.get(name, ()), nnx.unseen.get(name, ())
    found = [*_alone(ours, theirs, "lost"), *_alone(theirs, ours, "only in NNX")]
    texts = linen.programs[name], nnx.programs[name]
    for without, line in () if found else _ELSEWHERE:
        if graphs.same_but(*texts, without):
            return [f"{name}: {line}{_moved(ours, theirs)}"]
    return found


def _alone(ours: Sequence[Unseen], theirs: Sequence[Unseen], word: str) -> Iterator[str]:
    """Yield one line per kind of operation that the first side has more often."""
    mine, others = (Counter((one.kind, one.what) for one in side) for side in (ours, theirs))
    for (kind, what), count in (mine - others).items():
        places = _places(
            [one for one in ours if (one.kind, one.what) == (kind, what)],
            [one for one in theirs if (one.kind, one.what) == (kind, what)],
            count,
        )
        yield f"{kind} {what} {word}{places}"


def _moved(ours: Sequence[Unseen], theirs: Sequence[Unseen]) -> str:
    """The first operation whose lines have no counterpart of the same text."""

    def told(one: Unseen) -> tuple[str, ...]:
        return tuple(text for _, text in one.lines)

    alone = Counter(map(told, ours)) - Counter(map(told, theirs))
    place = next((one.place for one in ours if told(one) in alone), "")
    return f": {place}" if place else ""


def _places(ours: Sequence[Unseen], theirs: Sequence[Unseen], count: int) -> str:
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
    shown = "; ".join(names[:_PLACES])
    rest = f" and {len(names) - _PLACES} more places" if len(names) > _PLACES else ""
    return f": {'' if sure else 'one of '}{shown}{rest}" if names else ""


def program(linen: SideResult, nnx: SideResult, found: Programs) -> Check:
    """The check of what was found; programs that compute otherwise are for the verdict to judge."""
    failures = [
        f"{name}: there is no NNX program to compare with"
        for name in linen.programs
        if name not in nnx.programs
    ]
    if linen.untraced:
        return Check("program", "not_run", 0, (linen.untraced,))
    if not linen.programs:
        failures.append("nothing was compared")
    # What is sure first; with "one of" only the kind is known.
    failures += sorted(found.unseen, key=lambda line: ": one of " in line)
    leaves = len(linen.programs.keys() & nnx.programs.keys())
    notes = [f"not the same program: {line}" for line in found.parts]
    notes += [f"the same by {', '.join(found.rules)}"] if found.rules else []
    return checked("program", leaves, failures, notes)
