"""Settles the books: what the rewriter claims against what both counts show.

*Rewritten* is never believed. Input and output are counted by the same code, and within one file,
owner and symbol exactly as many places were rewritten as are gone from the output. The owner of a
place is the innermost reported class around it, else the scope it stands in. What survives was
refused or kept: the claims say which, and survivors that nobody claims were refused.

So a claim can be wrong in a few ways only, and each is a violation:

- a class or place reported rewritten that survives (its entry reads refused: it was left alone);
- a place reported refused or kept that is gone;
- a reference, or a certain call site, that the input does not have;
- a Linen class nobody reports; one reported rewritten that still is Linen, or reported otherwise
  and no Linen class any more (then a base of it was converted away under it);
- an input file that is missing from the output, or no longer parses.

A stale call, one of a Linen module method on a class that the output made NNX, survives like any
other: converting a class never makes its callers count as rewritten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from nnx_migrate.ledger.data import Count, Entry, Ledger, Place
from nnx_migrate.model import Outcome, Tally

Claims = Mapping[tuple[str, int, int], Outcome]
_Key = tuple[str, str, str]  # path, owner, symbol


def survivors(before: Count, after: Count) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """Call sites, and handles, that the output still has, as Linen's or as stale ones."""
    calls = (*after.call_sites, *_new_places(before.stale, after.stale))
    return calls, (*after.handles, *_new_places(before.stale_handles, after.stale_handles))


def settle(
    before: Count,
    after: Count,
    class_outcomes: Mapping[str, Outcome],
    place_outcomes: Claims,
    call_outcomes: Claims | None = None,
    staying: Collection[tuple[str, int, int]] = (),
) -> Ledger:
    """Settle the ledger of one run.

    Args:
        before: the count of the input.
        after: the count of the output, under the same paths and module names.
        class_outcomes: by qualified name, what became of each Linen class. Every place in a class
            has its class's outcome unless a place outcome says otherwise.
        place_outcomes: by (path, line, column) in the input, what became of single references.
        call_outcomes: the same for call sites and handles, whose start is often a reference's
            start too (``nn.Dense(3).init(...)``). None: ``place_outcomes`` serves both.
        staying: references that converted classes keep for their lazy submodules (``nn.remat(Block)``).

    Returns:
        The two tallies, always balanced, the entry of every input place, and the violations.
    """
    classes = {_plain(name): outcome for name, outcome in class_outcomes.items()}
    calls = place_outcomes if call_outcomes is None else call_outcomes
    references = _settle_kind(
        _Kind("reference", before.references, after.references, place_outcomes, classes, staying)
    )
    left_calls, left_handles = survivors(before, after)
    call_sites = _settle_kind(_Kind("call site", before.call_sites, left_calls, calls, classes))
    handles = _settle_kind(_Kind("handle", before.handles, left_handles, calls, classes))
    violations = [
        *_check_files(before, after),
        *_check_classes(before, after, classes),
        *references.violations,
        *call_sites.violations,
        *handles.violations,
    ]
    return Ledger(
        references=tally(references.entries),
        call_sites=tally(call_sites.entries),
        violations=tuple(violations),
        reference_entries=references.entries,
        call_site_entries=call_sites.entries,
        handle_entries=handles.entries,
        missing_lazy_forms=after.missing_lazy_forms,
    )


def tally(entries: Iterable[Entry]) -> Tally:
    """Add up entries by outcome."""
    sums = dict.fromkeys(Outcome, 0)
    for entry in entries:
        sums[entry.outcome] += 1
    return Tally(
        total=sum(sums.values()),
        rewritten=sums[Outcome.REWRITTEN],
        refused=sums[Outcome.REFUSED],
        kept=sums[Outcome.KEPT],
    )


@dataclass(frozen=True)
class _Kind:
    """One kind of place and all that is said about it."""

    noun: str
    before: Sequence[Place]
    after: Sequence[Place]
    claims: Claims
    classes: Mapping[str, Outcome]
    staying: Collection[tuple[str, int, int]] = ()


@dataclass(frozen=True)
class _Books:
    entries: tuple[Entry, ...]
    violations: tuple[str, ...]


def _settle_kind(kind: _Kind) -> _Books:
    old, new = _by_key(kind.before, kind.classes), _by_key(kind.after, kind.classes)
    entries: list[Entry] = []
    violations: list[str] = []
    for key in sorted({*old, *new}):
        group = _settle_group(kind, key, old.get(key, []), new.get(key, []))
        entries.extend(group.entries)
        violations.extend(group.violations)
    return _Books(tuple(sorted(entries, key=lambda entry: entry.place)), tuple(violations))


def _settle_group(kind: _Kind, key: _Key, old: list[Place], new: list[Place]) -> _Books:
    """Give each input place of one file, owner and symbol its outcome.

    As many places as survive are not rewritten. They are taken from those claimed not rewritten
    first, then from those nobody claims, then from those claimed rewritten.
    """
    claims = [(place, _claim(kind, place)) for place in old]
    order = sorted(claims, key=lambda item: (_rank(item[1]), item[0].certain, item[0]))
    left = len(new)
    entries: list[Entry] = []
    violations: list[str] = []
    for place, claim in order:
        survives, left = left > 0, left - 1
        outcome = _outcome(claim, survives)
        entries.append(Entry(place, outcome, is_claimed=claim is outcome))
        if claim is not None and claim is not outcome and _binding(kind, place, claim):
            violations.append(_message(kind, place, claim, new))
    # What a class keeps for its lazy submodules both its constructor and its call may have.
    copies = 2 if all(one.at in kind.staying for one in old) else 1
    for place in sorted(new)[copies * len(old) :]:
        if kind.noun == "reference" or place.certain:
            violations.append(
                f"{_at(place)}: the output has a {kind.noun} of {place.symbol} in {key[1]} that"
                f" the input does not have; expected at most {len(old)}, found {len(new)}"
            )
    return _Books(tuple(entries), tuple(violations))


def _rank(claim: Outcome | None) -> int:
    if claim is None:
        return 1
    return 2 if claim is Outcome.REWRITTEN else 0


def _outcome(claim: Outcome | None, survives: bool) -> Outcome:
    if not survives:
        return Outcome.REWRITTEN
    return Outcome.REFUSED if claim in (None, Outcome.REWRITTEN) else claim or Outcome.REFUSED


def _binding(kind: _Kind, place: Place, claim: Outcome) -> bool:
    """Whether a broken claim is a lie.

    Always for references and for what was claimed by place. A class's outcome claims a call only by
    default: on an unknown receiver it stays in a rewritten class, which is a refusal, and in a class
    that stays it is gone where its receiver is lazy.
    """
    by_place = place.at in kind.claims
    is_sure = place.certain and claim is Outcome.REWRITTEN
    return kind.noun == "reference" or by_place or is_sure


def _message(kind: _Kind, place: Place, claim: Outcome, new: list[Place]) -> str:
    what = f"{_at(place)}: the {kind.noun} of {place.symbol} in {place.scope}"
    if claim is Outcome.REWRITTEN:
        where = ", ".join(_at(one) for one in new[:3])
        return f"{what} is reported rewritten, but the output still has it, at {where}"
    return f"{what} is reported {claim}, which leaves it alone, but the output lacks it"


def _claim(kind: _Kind, place: Place) -> Outcome | None:
    if place.at in kind.staying:
        return Outcome.REFUSED
    claimed = kind.claims.get(place.at)
    if claimed is not None:
        inside = kind.classes.get(_owner(place.scope, kind.classes))
        # A class is converted whole: no other reference to Linen may stay in it.
        if kind.noun == "reference" and inside is Outcome.REWRITTEN:
            return inside
        return claimed
    return kind.classes.get(_owner(place.scope, kind.classes))


def _by_key(places: Iterable[Place], classes: Mapping[str, Outcome]) -> dict[_Key, list[Place]]:
    groups: dict[_Key, list[Place]] = defaultdict(list)
    for place in places:
        groups[place.path, _owner(place.scope, classes), place.symbol].append(place)
    return groups


def _owner(scope: str, classes: Mapping[str, Outcome]) -> str:
    """The innermost reported class around a scope, else the scope."""
    name = scope
    while name and name not in classes:
        name = name.rpartition(".")[0]
    return name or scope


def _new_places(before: Sequence[Place], after: Sequence[Place]) -> list[Place]:
    """Stale places the output has beyond those that the input already had."""
    known: dict[_Key, int] = defaultdict(int)
    for place in before:
        known[place.path, place.scope, place.symbol] += 1
    added = []
    for place in after:
        key = (place.path, place.scope, place.symbol)
        known[key] -= 1
        if known[key] < 0:
            added.append(place)
    return added


def _check_files(before: Count, after: Count) -> list[str]:
    missing = sorted(set(before.paths) - set(after.paths))
    broken = sorted(set(after.unreadable) - set(before.unreadable))
    return [
        *(f"{path}: the output lacks this file" for path in missing),
        *(f"{path}: the output does not parse, though the input does" for path in broken),
    ]


def _check_classes(before: Count, after: Count, classes: Mapping[str, Outcome]) -> list[str]:
    """Every Linen class has an outcome, and is Linen in the output unless it was rewritten."""
    still = {(place.path, place.symbol) for place in after.classes}
    found: list[str] = []
    for place in before.classes:
        outcome = classes.get(place.symbol)
        stays = (place.path, place.symbol) in still
        if outcome is None:
            found.append(f"{_at(place)}: the Linen class {place.symbol} has no outcome")
        elif outcome is Outcome.REWRITTEN and stays:
            found.append(
                f"{_at(place)}: {place.symbol} is reported rewritten, but is still a Linen class"
            )
        elif outcome is not Outcome.REWRITTEN and not stays:
            found.append(
                f"{_at(place)}: {place.symbol} is reported {outcome}, but is no Linen class in"
                " the output"
            )
    return found


def _plain(name: str) -> str:
    """A qualified name without the ``<locals>`` of ``__qualname__``."""
    return name.replace(".<locals>", "")


def _at(place: Place) -> str:
    return f"{place.path}:{place.line}:{place.column}"
