"""``python -m benchmarks.sizes --set SET``: the sizes that real code needs, and who finds them.

Every case of the corpus is recorded in Linen. What its layers were given there is the denominator,
committed as ``needed.json`` (``--freeze`` writes it). Then each package is rewritten twice, without
the recordings and with them, and the reports say of each size whether the code tells it, the
recordings, or neither. A size that the code tells wrongly makes the command fail, and so does one
that was compared with no trace.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.corpus.fetch import FetchError
from benchmarks.corpus.packages import CHECKOUT, SETS, cases
from benchmarks.corpus.run import Progress
from benchmarks.sizes import table
from benchmarks.sizes.run import Options, freeze, measure

_SETS = tuple(one for one in SETS if one != "guide")


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0: measured; 1: a wrong size, or other sizes than committed; 2: not measured."""
    parser = _parser()
    given = parser.parse_args(arguments)
    names = {name for case in cases(given.set) for name in (case.name, case.package)}
    if given.only is not None and given.only not in names:
        parser.error(f"--only {given.only}: no such case or package in {given.set}")
    progress = Progress()
    options = Options(given.set, given.cache.resolve(), given.only, given.timeout)
    try:
        if given.freeze:
            problems = freeze(options, progress)
        else:
            rows, problems = measure(options, progress)
    except FetchError as error:
        progress.done()
        sys.stderr.write(f"error: {error}\n")
        return 2
    progress.done()
    if not given.freeze:
        content = {"schema": 1, "set": given.set, "cases": [asdict(one) for one in rows]}
        sys.stdout.write(f"{table.summary([content])}\n\n{table.of_set(content)}\n")
        _store(content, given)
    for problem in problems:
        sys.stderr.write(f"error: {problem}\n")
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    parser.add_argument("--set", choices=_SETS, required=True)
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".cache" / "corpus")
    parser.add_argument("--only", metavar="NAME", help="one case, or all cases of one package")
    parser.add_argument(
        "--freeze", action="store_true", help="list what the cases need that are named or have no list"
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results here")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one case")
    parser.add_argument(
        "--write-results", action="store_true", help="put the tables of all sets run so far there"
    )
    return parser


def _store(content: dict[str, Any], given: argparse.Namespace) -> None:
    """Write the JSON, keep a whole set's result in the cache, and renew docs/results/cases.md if asked."""
    text = json.dumps(content, indent=1) + "\n"
    if given.json is not None:
        given.json.write_text(text, encoding="utf-8")
    folder = given.cache / "sizes"
    if given.only is None:
        (folder / f"{given.set}.json").write_text(text, encoding="utf-8")
    if given.write_results:
        files = [folder / f"{name}.json" for name in _SETS]
        results = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
        if not table.write_results(CHECKOUT / "docs" / "results" / "cases.md", results):
            sys.stderr.write("error: docs/results/cases.md has no <!-- sizes-table --> section\n")


if __name__ == "__main__":
    sys.exit(main())
