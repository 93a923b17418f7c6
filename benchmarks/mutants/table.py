"""The kill table: committed as JSON for programs, and as Markdown for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.mutants.mutant import MODES, Mutant
from benchmarks.mutants.running import Row, row_of
from nnx_migrate.parity.certificate.data import Count, Tally

FOLDER = Path(__file__).parent


def read(path: Path) -> list[Row]:
    """The rows that were written; none where there is no file."""
    if not path.is_file():
        return []
    return [row_of(data) for data in json.loads(path.read_text(encoding="utf-8"))]


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows, whole: one a line, so that they can be told apart in a diff."""
    lines = ",\n".join(json.dumps(row.as_json()) for row in rows)
    new = path.with_suffix(".new")
    new.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    new.replace(path)


def markdown(rows: Sequence[Row], mutants: Sequence[Mutant]) -> str:
    """Counts, what survived, and every row."""
    known = {one.name: one for one in mutants}
    told = [row for row in rows if row.mutant in known]
    reasons = [f"- {one.name}: {one.equivalent}" for one in mutants if one.equivalent]
    return "\n".join(
        [
            "# Which check sees which fault",
            "",
            "Written by `make mutants`. One line of the NNX side, or of what only that side imports, is",
            "another; the command is `nnx-migrate parity` with the words shown.",
            "",
            *_counts(told, known),
            f"- sources that the rows are of, by hash: {_trees(told)}",
            "",
            "| fault | file | command | killed by | place named | hazards |",
            "|---|---|---|---|---|---|",
            *(_line(row, known[row.mutant]) for row in told),
            *(["", "Equivalent, with the reason:", "", *reasons] if reasons else []),
            "",
        ]
    )


def tallies(rows: Iterable[Row], mutants: Iterable[Mutant]) -> dict[str, Tally]:
    """The score by size of model, over all mutants that apply there: what did not run is not killed."""
    rows, mutants = list(rows), list(mutants)
    return {mode: _tally(mode, rows, mutants) for mode in MODES}


def _tally(mode: str, rows: Sequence[Row], mutants: Sequence[Mutant]) -> Tally:
    here = [one for one in mutants if one.words(mode)]
    real = {one.name for one in here if not one.equivalent}
    killed = [row for row in rows if row.mode == mode and row.mutant in real and row.is_killed]
    return Tally(
        total=Count(len(here)),
        equivalent=Count(len(here) - len(real)),
        killed=Count(len(killed)),
        named=Count(sum(row.named for row in killed)),
    )


def survivors(rows: Iterable[Row], mutants: Iterable[Mutant]) -> list[Row]:
    """Rows of faults that no check saw, and of equivalent ones that a check saw all the same."""
    equivalent = {one.name for one in mutants if one.equivalent}
    return [row for row in rows if row.mutant and row.is_killed == (row.mutant in equivalent)]


def _trees(rows: Sequence[Row]) -> str:
    counted = Counter(row.tree for row in rows)
    return ", ".join(f"{tree} {count}" for tree, count in counted.most_common())


def _counts(rows: Sequence[Row], known: dict[str, Mutant]) -> list[str]:
    lines = []
    for mode in dict.fromkeys(row.mode for row in rows):
        ours = [row for row in rows if row.mode == mode and not known[row.mutant].equivalent]
        killed = [row for row in ours if row.is_killed]
        named = sum(row.named for row in killed)
        checks = Counter(name for row in killed for name in row.killed_by)
        shown = ", ".join(f"{name} {count}" for name, count in checks.most_common())
        lines.append(
            f"- {mode}: {len(killed)} of {len(ours)} killed, the place named in {named}; checks that "
            f"failed: {shown}"
        )
    return lines


def _line(row: Row, mutant: Mutant) -> str:
    if row.is_killed:
        outcome = ", ".join(row.killed_by)
    else:
        outcome = "equivalent" if mutant.equivalent else f"**survived** ({row.verdict})"
    named = ("yes" if row.named else "no") if row.is_killed else ""
    return (
        f"| {row.mutant} | {mutant.path} | {row.words} | {outcome} | {named} | {mutant.hazards} |"
    )
