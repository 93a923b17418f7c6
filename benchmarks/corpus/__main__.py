"""``python -m benchmarks.corpus --set SET``: rewrite real packages and prove the result."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.corpus import guide, table
from benchmarks.corpus.fetch import FetchError
from benchmarks.corpus.packages import CHECKOUT, SETS, cases
from benchmarks.corpus.run import Options, Progress, required, run


def main(arguments: list[str] | None = None) -> int:
    """Run one set. Exit code 0: nothing contradicts itself; 1: something does; 2: not run."""
    parser = _parser()
    options = parser.parse_args(arguments)
    names = {name for case in cases(options.set) for name in (case.name, case.package)}
    if options.only is not None and options.set != "guide" and options.only not in names:
        parser.error(f"--only {options.only}: no such case or package in {options.set}")
    progress = Progress()
    chosen = Options(
        chosen=options.set,
        cache=options.cache.resolve(),
        only=options.only,
        timeout=options.timeout,
        jobs=options.jobs,
        fresh=options.fresh,
    )
    try:
        content = (guide.run if options.set == "guide" else run)(chosen, progress)
    except FetchError as error:
        progress.done()
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        progress.done()
        sys.stderr.write("interrupted; finished cases are kept and not run again\n")
        return 130
    progress.done()
    _store(content, options)
    sys.stdout.write(f"{table.summary([content])}\n\n{table.results_of_set(content)}\n")
    contradictions = required(content) if options.set != "guide" else []
    for line in contradictions:
        sys.stderr.write(f"error: {line}\n")
    return 1 if contradictions else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description=__doc__)
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".cache" / "corpus")
    parser.add_argument("--only", metavar="NAME", help="one case, or all cases of one package")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results here")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one case")
    parser.add_argument("--fresh", action="store_true", help="do not reuse results of former runs")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="cases compared at once")
    parser.add_argument(
        "--write-results", action="store_true", help="put the tables of all sets run so far there"
    )
    return parser


def _store(content: dict[str, Any], options: argparse.Namespace) -> None:
    """Write the JSON, keep a whole set's result in the cache, and renew docs/results/cases.md if asked."""
    text = json.dumps(content, indent=1) + "\n"
    if options.json is not None:
        options.json.write_text(text, encoding="utf-8")
    if options.only is None:
        (options.cache / f"{options.set}.json").write_text(text, encoding="utf-8")
    if options.write_results:
        files = [options.cache / f"{name}.json" for name in SETS]
        results = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
        if not table.write_results(CHECKOUT / "docs" / "results" / "cases.md", results):
            sys.stderr.write("error: docs/results/cases.md has no <!-- corpus-table --> section\n")


if __name__ == "__main__":
    sys.exit(main())
