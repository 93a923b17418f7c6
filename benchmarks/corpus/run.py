"""Run a set: fetch, rewrite, compare; one row per case whatever happens."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus import fetch, frozen
from benchmarks.corpus.comparing import Row, compare
from benchmarks.corpus.packages import Case, cases, packages, requirements
from benchmarks.corpus.rewriting import OUTCOMES, Rewritten, rewrite


@dataclass(frozen=True)
class Options:
    """How to run. ``only`` chooses cases by name, or all cases of a package by its name."""

    chosen: str
    cache: Path
    only: str | None = None
    timeout: float = 900.0
    jobs: int = 1
    fresh: bool = False


class Progress:
    """One changing line on a terminal; nothing in a pipe."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __call__(self, message: str) -> None:
        """Show what is being done."""
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{message}")
            sys.stderr.flush()

    def done(self) -> None:
        """Clear the line."""
        self("")


def run(options: Options, log: Callable[[str], None]) -> dict[str, Any]:
    """Return ``{"schema", "set", "packages": [...], "cases": [...]}`` of one set.

    Raises :class:`fetch.FetchError` when the environment or a package cannot be had.
    """
    lists = frozen.read()
    chosen = [case for case in cases(options.chosen) if _wanted(case, options.only)]
    names = {case.package for case in chosen}
    python = fetch.environment(options.cache, requirements(options.chosen), log)
    results: list[dict[str, Any]] = []
    rows: list[Row] = []
    for package in packages(options.chosen):
        if options.only is not None and package.name not in names:
            continue
        tree = fetch.source(options.cache, package, python, log)
        log(f"{package.name}: rewriting")
        folder = options.cache / "rewritten" / package.set / package.name
        rewritten = rewrite(package, tree, folder, options.timeout)
        classes = lists["classes"][options.chosen][package.name]
        results.append(_package_result(rewritten, classes))
        own = [case for case in chosen if case.package == package.name]
        rows += _compare_all(own, lists["cases"][options.chosen], rewritten, python, options, log)
    return {
        "schema": 1,
        "set": options.chosen,
        "packages": results,
        "cases": [asdict(row) for row in rows],
    }


def _compare_all(
    own: list[Case],
    truths: Mapping[str, Any],
    rewritten: Rewritten,
    python: Path,
    options: Options,
    log: Callable[[str], None],
) -> list[Row]:
    folder = (options.cache / "results").resolve()

    def one(case: Case) -> Row:
        log(f"{rewritten.package.name}: comparing {case.name}")
        truth = truths[case.name]
        return compare(case, truth, rewritten, python, folder, options.timeout, options.fresh)

    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        return list(pool.map(one, own))


def _package_result(rewritten: Rewritten, classes: list[str]) -> dict[str, Any]:
    outcomes = rewritten.outcomes()
    found = [outcomes[name]["outcome"] for name in classes if name in outcomes]
    return {
        "name": rewritten.package.name,
        "distribution": rewritten.package.requirement,
        "seconds": round(rewritten.seconds, 1),
        "error": rewritten.error or "",
        "classes": {outcome: found.count(outcome) for outcome in OUTCOMES},
        "total_classes": len(classes),
        "unreported_classes": [name for name in classes if name not in outcomes],
        "refusals": {
            name: outcomes[name].get("reason") or ""
            for name in classes
            if name in outcomes and outcomes[name]["outcome"] != "rewritten"
        },
        "references": rewritten.report.get("references", {}),
        "call_sites": rewritten.report.get("call_sites", {}),
    }


def _wanted(case: Case, only: str | None) -> bool:
    return only is None or only in (case.name, case.package)


def required(content: Mapping[str, Any]) -> list[str]:
    """Return what no run may show: a case that differs while all its classes say rewritten."""
    return [
        f"{row['case']}: {row['verdict']} although every class of the case is rewritten"
        for row in content["cases"]
        if row["verdict"] == "different"
        and row["classes"]["rewritten"] == sum(row["classes"].values())
    ]
