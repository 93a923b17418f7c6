"""``python -m benchmarks.linen_tests``: rewrite flax's tests/linen and compare what was recorded.

Without ``--evidence DIR`` only the outcomes are counted. ``DIR`` holds one evidence file for each test
file: ``nnx-migrate record -o DIR/NAME.db -- python -m pytest -p no:cacheprovider tests/linen/NAME.py``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.corpus.packages import CHECKOUT, Package
from benchmarks.corpus.rewriting import Rewritten, rewrite, run_tool
from benchmarks.linen_tests import classes
from benchmarks.linen_tests.outcomes import Counts, counts, refusals, verdicts_of


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0: nothing contradicts itself; 1: a class differs or is not reported; 2: not run."""
    options = _parser().parse_args(arguments)
    cache = options.cache.resolve()
    package = Package("tests-linen", "linen-tests", "flax", "0.12.8", "tests/linen")
    tree = classes.tree_of(cache)
    done = rewrite(package, tree, cache / "rewritten" / "linen-tests", options.timeout)
    if done.error is not None:
        sys.stderr.write(f"error: {done.error}\n")
        return 2
    rows = _replayed(options.evidence, done, options.timeout) if options.evidence else []
    verdicts = verdicts_of(rows)
    lists = classes.read()
    found = counts(lists, done.report, verdicts)
    if options.json is not None:
        content = {"classes": done.report["classes"], "verdicts": verdicts, "modules": rows}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(_table(found, lists, done.report))
    wrong = [name for name, verdict in verdicts.items() if verdict == "different"]
    for name in (*wrong, *found.unreported):
        sys.stderr.write(f"error: {name}: {'different' if name in wrong else 'not reported'}\n")
    return 1 if wrong or found.unreported else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linen_tests", description=__doc__)
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".cache" / "corpus")
    parser.add_argument("--evidence", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every class here")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one test file")
    return parser


def _replayed(evidence: Path, done: Rewritten, timeout: float) -> list[dict[str, Any]]:
    """The rows of every evidence file; a file that cannot be compared stops nothing."""
    rows: list[dict[str, Any]] = []
    for file in sorted(evidence.glob("*.db")):
        report = done.after.parent / f"{file.stem}.json"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-W", "ignore", "-m", "nnx_migrate", "parity", f"case={file}"]
        command += [f"before={done.before}", f"after={done.after}", f"map={done.map}"]
        try:
            run_tool([*command, f"report={report}"], timeout)
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"{file.name}: not finished after {timeout:g} s\n")
        if report.exists():
            rows += json.loads(report.read_text(encoding="utf-8"))["modules"]
    return rows


def _table(found: Counts, lists: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    total = len(lists["initialised"])
    lines = [
        "| classes of flax 0.12.8 `tests/linen` | rewritten | bridged | refused | kept |",
        "|---|---|---|---|---|",
        _line(f"all {len(lists['classes'])}", found.of_all),
        _line(f"the {total} that `record` saw initialised", found.of_initialised),
        "",
        f"at parity on recorded calls: {found.at_parity} of {total}; verdicts of those rewritten: "
        + ", ".join(f"{count} {verdict}" for verdict, count in sorted(found.verdicts.items())),
        "",
    ]
    for reason, places in refusals(lists, report):
        more = ", ..." if len(places) > 3 else ""
        lines.append(f"- {len(places)}: {reason} ({', '.join(places[:3])}{more})")
    return "\n".join(lines) + "\n"


def _line(label: str, outcomes: Mapping[str, int]) -> str:
    return f"| {label} | {' | '.join(str(count) for count in outcomes.values())} |"


if __name__ == "__main__":
    sys.exit(main())
