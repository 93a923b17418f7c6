"""``python -m benchmarks.mutants``: one-line faults in one side, and the check that sees each.

Every command first runs without a fault. What ran before on the same sources is not run again, so that
an interrupted run goes on; ``--any-tree`` takes rows of other sources too. Exit code 0: every fault was
seen, or is equivalent with a reason; 1: one survived, or a pair without a fault is different; 2: not run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from threading import Lock

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.mutants import table
from benchmarks.mutants.catalogue import MUTANTS
from benchmarks.mutants.mutant import (
    MODES,
    Mutant,
    MutantError,
    require_applicable,
    tree_digest,
)
from benchmarks.mutants.running import Row, run
from benchmarks.mutants.unmutated import run_unmutated
from nnx_migrate.parity.certificate import score

Job = tuple[Mutant | None, str, tuple[str, ...]]


def main(arguments: list[str] | None = None) -> int:
    """Run the suite, or pairs without a fault; the exit code."""
    options = _parser().parse_args(arguments)
    if options.unmutated:
        return run_unmutated(options.unmutated, options.folder, tree_digest(), progress())
    try:
        require_applicable(MUTANTS)
        chosen = _chosen(options.mutant)
    except MutantError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    rows = _run(jobs_of(chosen, options.mode or MODES), options)
    (options.folder / "kills.md").write_text(table.markdown(rows, MUTANTS), encoding="utf-8")
    _keep_score(rows, options.folder)
    alarms = [row for row in rows if not row.mutant and row.verdict == "different"]
    alive = table.survivors(rows, MUTANTS)
    for row in (*alarms, *alive):
        told = "killed, and said to be equivalent" if row.is_killed else "survived"
        what = f"{row.mutant} {told}" if row.mutant else "different without a fault"
        sys.stdout.write(f"{what}: {row.words}: {row.verdict}: {row.message[:300]}\n")
    faults = [row for row in rows if row.mutant]
    sys.stdout.write(
        f"{sum(row.is_killed for row in faults)} of {len(faults)} killed, {len(alive)} survived, "
        f"the place named in {sum(row.named for row in faults)}\n"
    )
    return int(bool(alive or alarms))


def _keep_score(rows: list[Row], folder: Path) -> None:
    """Write the score that certificates quote: that of these sources, where all rows are of them."""
    if folder != table.FOLDER:
        return
    is_current = all(row.tree == tree_digest() for row in rows)
    source = score.source_digest() if is_current else None
    score.FILE.write_text(score.text_of(table.tallies(rows, MUTANTS), source), encoding="utf-8")


def jobs_of(mutants: Iterable[Mutant], modes: Iterable[str]) -> list[Job]:
    """Every mutant in every mode that applies, after each command without a fault; modes in turn."""
    jobs: list[Job] = []
    for mode in modes:
        found = [(one, mode, one.words(mode)) for one in mutants if one.words(mode)]
        commands = dict.fromkeys(words for _, _, words in found)
        for command in commands:
            jobs.append((None, mode, command))
            jobs += [job for job in found if job[2] == command]
    return jobs


def progress() -> Progress:
    """A bar on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal)


def _run(jobs: list[Job], options: argparse.Namespace) -> list[Row]:
    tree = tree_digest()
    path = options.folder / "kills.json"
    known = {(row.mutant, row.mode, row.words): row for row in table.read(path)}
    current = {_key(job) for job in jobs_of(MUTANTS, MODES)}
    known = {key: row for key, row in known.items() if key in current}
    writing = Lock()
    with progress() as bar:
        task = bar.add_task("", total=len(jobs))

        def attempt(job: Job) -> None:
            mutant, mode, words = job
            row = known.get(_key(job))
            if row is None or not _is_current(row, mutant, None if options.any_tree else tree):
                row = run(mutant, mode, words, tree)
            elif mutant is not None:
                row = row.of_place(mutant.place)
            with writing:
                known[_key(job)] = row
                table.write(path, _in_order(known))
                bar.update(task, advance=1, description=mutant.name if mutant else " ".join(words))

        def attempt_all(command: list[Job]) -> None:
            for job in command:  # the pair without a fault first: it leaves the Linen side's result
                attempt(job)

        commands = [list(found) for _, found in groupby(jobs, key=lambda job: job[1:])]
        with ThreadPoolExecutor(options.workers) as pool:
            list(pool.map(attempt_all, commands))
    return _in_order(known)


def _in_order(known: dict[tuple[str, str, str], Row]) -> list[Row]:
    return [known[key] for key in map(_key, jobs_of(MUTANTS, MODES)) if key in known]


def _key(job: Job) -> tuple[str, str, str]:
    mutant, mode, words = job
    return (mutant.name if mutant else "", mode, " ".join(words))


def _is_current(row: Row, mutant: Mutant | None, tree: str | None) -> bool:
    if (tree is not None and row.tree != tree) or row.verdict.startswith("exit"):
        return False
    if mutant is None:
        return row.definition == ""
    return row.definition == mutant.digest() and row.knows(mutant.place)


def _chosen(names: list[str] | None) -> tuple[Mutant, ...]:
    known = {one.name for one in MUTANTS}
    unknown = sorted({*(names or ())} - known)
    if unknown:
        raise MutantError(f"no such mutants: {', '.join(unknown)}")
    return tuple(one for one in MUTANTS if not names or one.name in names)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--mutant", action="append", metavar="NAME", help="only this; repeatable")
    parser.add_argument("--mode", action="append", choices=MODES, help="only this size")
    parser.add_argument("--workers", type=int, default=1, help="commands at once")
    parser.add_argument("--any-tree", action="store_true", help="keep rows of other sources")
    parser.add_argument(
        "--unmutated", type=int, metavar="N", help="N pairs without a fault instead"
    )
    parser.add_argument("--folder", type=Path, default=table.FOLDER, help="of the tables")
    return parser


if __name__ == "__main__":
    sys.exit(main())
