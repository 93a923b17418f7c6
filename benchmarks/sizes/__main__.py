"""``python -m benchmarks.sizes --set SET``: the sizes that real code needs, and who finds them.

Every case of the corpus is recorded in Linen. What its layers were given there is the denominator,
committed as ``needed.json`` (``--freeze`` writes it). Then each case's package is rewritten with
that recording, and the report says of each size whether the code told it, the recording, or
neither. A size that the code tells wrongly makes the command fail.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.corpus import fetch
from benchmarks.corpus.packages import CHECKOUT, SETS, Case, cases, packages, requirements
from benchmarks.corpus.run import Progress
from benchmarks.sizes import frozen
from benchmarks.sizes.measure import MeasureError, Row, hashes_of, report_with_evidence, row
from benchmarks.sizes.traced import Needed, TraceError, needed, record


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0: measured; 1: a wrong size, or other sizes than committed; 2: not measured."""
    parser = _parser()
    options = parser.parse_args(arguments)
    names = {name for case in cases(options.set) for name in (case.name, case.package)}
    if options.only is not None and options.only not in names:
        parser.error(f"--only {options.only}: no such case or package in {options.set}")
    progress = Progress()
    rows: list[Row] = []
    problems: list[str] = []
    try:
        for case, tree, python in _chosen(options, progress):
            progress(f"{case.name}: recording")
            file = _recording(options.cache.resolve(), case)
            try:
                record(case, tree, python, file, options.timeout)
                sizes = needed(file, hashes_of(tree).get)
                if options.freeze:
                    frozen.write(case, sizes)
                else:
                    problems += _against_frozen(case, sizes)
                    progress(f"{case.name}: rewriting")
                    report = report_with_evidence(tree, sizes, file, options.timeout)
                    rows.append(row(case.name, sizes, report))
            except (TraceError, MeasureError) as error:
                problems.append(f"{case.name}: {error}")
    except fetch.FetchError as error:
        progress.done()
        sys.stderr.write(f"error: {error}\n")
        return 2
    progress.done()
    if not options.freeze:
        _show(rows, options.json)
    problems += [f"{one.case}: {one.wrong} sizes are wrong" for one in rows if one.wrong]
    for problem in problems:
        sys.stderr.write(f"error: {problem}\n")
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    parser.add_argument("--set", choices=[one for one in SETS if one != "guide"], required=True)
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".cache" / "corpus")
    parser.add_argument("--only", metavar="NAME", help="one case, or all cases of one package")
    parser.add_argument(
        "--freeze",
        action="store_true",
        help="write the lists of needed sizes of the cases named, or that have none",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results here")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one case")
    return parser


def _chosen(
    options: argparse.Namespace, log: Callable[[str], None]
) -> Iterator[tuple[Case, Path, Path]]:
    """The cases to measure with their package's tree and the interpreter to run them with."""
    cache = options.cache.resolve()
    python = fetch.environment(cache, requirements(options.set), log)
    for package in packages(options.set):
        own = [one for one in cases(options.set) if one.package == package.name]
        own = [one for one in own if _wanted(one, options)]
        if own:
            tree = fetch.source(cache, package, python, log)
            yield from ((case, tree, python) for case in own)


def _wanted(case: Case, options: argparse.Namespace) -> bool:
    """A case that has its list is not frozen again unless it is named."""
    if options.only is None:
        return not options.freeze or frozen.of_case(case) is None
    return options.only in (case.name, case.package)


def _recording(cache: Path, case: Case) -> Path:
    """Where a case's recording lies; a case that changes is recorded anew."""
    name = f"{case.name.replace('/', '-')}-{case.digest()[:12]}.db"
    return cache / "sizes" / case.set / name


def _against_frozen(case: Case, sizes: list[Needed]) -> list[str]:
    """What is wrong with the traced sizes; a model without layers of Linen's own needs none."""
    if frozen.of_case(case) != frozen.listed(sizes):
        return [f"{case.name}: other sizes were traced than {frozen.FILE.name} has; see --freeze"]
    return []


def _show(rows: list[Row], file: Path | None) -> None:
    heads = ("case", "needed", "from the code", "recorded", "argument", "open", "wrong")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    counts = [
        (one.needed, one.static, one.recorded, one.argument, one.open, one.wrong) for one in rows
    ]
    cells = [(one.case, *count) for one, count in zip(rows, counts, strict=True)]
    cells.append(("all", *(sum(column) for column in zip(*counts, strict=True))))
    lines += [f"| {' | '.join(map(str, cell))} |" for cell in cells]
    sys.stdout.write("\n".join(lines) + "\n")
    if file is not None:
        content = {"schema": 1, "cases": [asdict(one) for one in rows]}
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
