"""What became of each class, and what comparing its recorded calls gave."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.corpus.rewriting import OUTCOMES, within_file

AT_PARITY = ("identical", "equal_by_rules", "numerically_equal")
EMPTY = "nothing shown"  # every comparison that fails is one of zeros or of nothing
ALONE = "cannot run alone"  # the Linen call itself does not run without what is around it
_EMPTY = re.compile(
    r"(every number is (zero|NaN)|nothing was compared(: the model has no variables)?)$"
)
# The verdict of a class is the worst of its recorded calls that could be compared.
_WORST_FIRST = ("different", EMPTY, "numerically_equal", "equal_by_rules", "identical")


@dataclass(frozen=True)
class Counts:
    """``of_all`` counts class statements, ``of_initialised`` classes of the denominator."""

    of_all: Mapping[str, int]
    of_initialised: Mapping[str, int]
    verdicts: Mapping[str, int]
    unreported: tuple[str, ...]

    @property
    def at_parity(self) -> int:
        """Classes of the denominator that are rewritten and at parity on their recorded calls."""
        return sum(self.verdicts.get(verdict, 0) for verdict in AT_PARITY)


def counts(
    lists: Mapping[str, Any], report: Mapping[str, Any], verdicts: Mapping[str, str]
) -> Counts:
    """Add up a report. ``verdicts`` is by class; those that are not rewritten are left out."""
    named = [(_name(entry), entry["outcome"]) for entry in report["classes"]]
    reported = Counter(name for name, _ in named)
    expected = Counter(lists["classes"])
    # Of two statements of one name the recorded class may be either: both have to be rewritten.
    outcomes = dict(sorted(named, key=lambda one: one[1] != "rewritten"))
    initialised = lists["initialised"]
    compared = {name: verdicts.get(name, "not compared") for name in initialised}
    return Counts(
        of_all=_by_outcome(outcome for _, outcome in named),
        of_initialised=_by_outcome(outcomes.get(name, "refused") for name in initialised),
        verdicts=Counter(compared[n] for n in initialised if outcomes.get(n) == "rewritten"),
        unreported=tuple(sorted((expected - reported).elements())),
    )


def refusals(
    lists: Mapping[str, Any], report: Mapping[str, Any]
) -> list[tuple[str, tuple[str, ...]]]:
    """Reasons within the denominator, names left out, with their classes; most frequent first."""
    found: dict[str, list[str]] = {}
    wanted = set(lists["initialised"])
    for entry in report["classes"]:
        if entry["outcome"] != "rewritten" and _name(entry) in wanted:
            reason = re.sub(r"'[^']*'|`[^`]*`", "…", entry.get("reason") or "")
            found.setdefault(reason, []).append(f"{entry['path']}:{entry['line']}")
    return sorted(((one, tuple(at)) for one, at in found.items()), key=lambda item: -len(item[1]))


def verdicts_of(modules: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The worst verdict of each class in the rows of ``parity case=sizes.db report=FILE``."""
    found: dict[str, list[str]] = {}
    for row in modules:
        qualified = row["module"].partition("(")[0]
        module, _, name = qualified.partition(":")[0].partition(".")
        found.setdefault(f"{module}.py:{name}", []).append(_verdict(row))
    return {name: _worst(each) for name, each in found.items()}


def _verdict(row: Mapping[str, Any]) -> str:
    """The verdict of one recorded call; where all that fails is that nothing was shown, that.

    The tests of Linen have many models of zeros and of nothing. They prove nothing, and do not differ.
    """
    checks = (row.get("report") or {}).get("checks", ())
    failed = [one["details"] for one in checks if one["status"] == "fail"]
    if failed and all(map(_EMPTY.search, (line for each in failed for line in each))):
        return EMPTY
    if row["verdict"] == "cannot run" and str(row.get("detail", "")).startswith("before side"):
        return ALONE
    return str(row["verdict"])


def _worst(verdicts: Sequence[str]) -> str:
    if "cannot run" in verdicts and "different" not in verdicts:
        return "cannot run"
    return next((one for one in (*_WORST_FIRST, ALONE) if one in verdicts), "not compared")


def _by_outcome(outcomes: Iterable[str]) -> dict[str, int]:
    found = Counter(outcomes)
    return {outcome: found[outcome] for outcome in OUTCOMES}


def _name(entry: Mapping[str, Any]) -> str:
    return f"{entry['path']}:{within_file(entry['name'], entry['path'])}"
