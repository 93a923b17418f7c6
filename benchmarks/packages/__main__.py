"""``python -m benchmarks.packages``: rewrite real packages to a form, and run their cases on both sides.

With ``--form lazy`` every case is initialised and applied before and after, each side in its own
process, under `jax.jit`: same paths, same bits, and `nn.build` gives the same variables. With ``--form auto`` the
cases are compared by ``parity``, which also builds explicit classes. A package with a file in
``benchmarks/corpus/settings`` is rewritten with that as part of its pyproject.toml; the table says so.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.corpus import comparing as by_parity
from benchmarks.corpus import fetch, frozen
from benchmarks.corpus.packages import CHECKOUT, Case, Package, cases, packages, requirements
from benchmarks.corpus.rewriting import Rewritten, rewrite, settings_of
from benchmarks.packages import table
from benchmarks.packages.comparing import Compared, compare, run_side
from benchmarks.packages.counting import Classes, count
from benchmarks.packages.side import AFTER, BEFORE

_BATCH = 6  # cases for each process: something is told while many run
SETS = ("rest", "transformers", "flax-examples")


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0: all classes NNX, all cases at parity, no internal error; else 1; 2: not run."""
    options = _parser().parse_args(arguments)
    known = {one.name for chosen in options.sets or SETS for one in packages(chosen)}
    if options.only and not set(options.only) <= known:
        sys.stderr.write(f"error: no such package: {sorted(set(options.only) - known)}\n")
        return 2
    options.cache = options.cache.resolve()
    results = []
    try:
        for chosen in options.sets or SETS:
            python = fetch.environment(options.cache, requirements(chosen), _log)
            for package in packages(chosen):
                if not options.only or package.name in options.only:
                    results.append(_package(package, python, options))
                    _log("\n".join([table.line(results[-1]), *table.problems(results[-1])]))
    except fetch.FetchError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{table.table(results)}\n")
    for problem in (line for result in results for line in table.problems(result)):
        sys.stdout.write(f"{problem}\n")
    return 1 if any(table.problems(result) for result in results) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packages", description=__doc__)
    parser.add_argument("--form", choices=("lazy", "auto"), default="lazy")
    parser.add_argument("--set", dest="sets", choices=SETS, action="append")
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".cache" / "corpus")
    parser.add_argument("--only", metavar="PACKAGE", action="append", help="may be repeated")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one case")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results here")
    parser.add_argument("--no-cases", action="store_true", help="rewrite and count only")
    return parser


def _package(package: Package, python: Path, options: argparse.Namespace) -> dict[str, Any]:
    tree = fetch.source(options.cache, package, python, _log)
    folder = options.cache / "rewritten" / options.form / package.set / package.name
    _log(f"{package.name}: rewriting")
    rewritten = rewrite(package, tree, folder, 1800, options.form)
    lists = frozen.read()
    classes = count(rewritten, lists["classes"][package.set][package.name])
    own = [case for case in cases(package.set) if case.package == package.name]
    compared: Sequence[Compared] = []
    if not options.no_cases and rewritten.error is None and own:
        _log(f"{package.name}: {len(own)} cases")
        if options.form == "lazy":
            compared = _lazy(own, rewritten, tree, python, options)
        else:
            truths = lists["cases"][package.set]
            compared = [_auto(case, truths[case.name], rewritten, python, options) for case in own]
    return _result(rewritten, classes, compared)


def _lazy(
    own: list[Case], rewritten: Rewritten, tree: Path, python: Path, options: argparse.Namespace
) -> list[Compared]:
    kept = options.cache / "packages"
    found: list[Compared] = []
    for start in range(0, len(own), _BATCH):
        batch = own[start : start + _BATCH]
        before = run_side(python, tree, BEFORE, batch, kept, options.timeout)
        after = run_side(python, rewritten.after, AFTER, batch, kept, options.timeout)
        found += [compare(case, before[case.name], after[case.name]) for case in batch]
        if len(own) > _BATCH:
            _log(f"{sum(one.same for one in found)} of {len(found)} at parity so far")
    return found


def _auto(
    case: Case, truth: Any, rewritten: Rewritten, python: Path, options: argparse.Namespace
) -> Compared:
    folder = options.cache / "results"
    folder.mkdir(parents=True, exist_ok=True)
    row = by_parity.compare(case, truth, rewritten, python, folder, options.timeout, fresh=True)
    detail = "" if row.ok else f"{row.verdict}: {row.detail}"
    return Compared(case.name, case.package, row.ok, detail, {row.verdict: 1})


def _result(rewritten: Rewritten, classes: Classes, compared: Sequence[Compared]) -> dict[str, Any]:
    return {
        "name": rewritten.package.name,
        "distribution": rewritten.package.requirement,
        "error": rewritten.error or "",
        "seconds": round(rewritten.seconds, 1),
        "classes": asdict(classes),
        "call_sites": rewritten.report.get("call_sites", {}),
        "references": rewritten.report.get("references", {}),
        "cases": [asdict(one) for one in compared],
        "settings": settings.name if (settings := settings_of(rewritten.package)) else "",
    }


def _log(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
