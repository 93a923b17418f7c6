"""``python -m benchmarks.flax_suite``: flax's own suite before and after ``rewrite``.

The 15 files of flax 0.12.8's ``tests/linen`` run under Linen as they stand, then rewritten, in
processes where ``flax.linen`` cannot be imported. ``--form auto`` rewrites every test by itself: beside
others, most of their classes would be lazy. Exit code 0: every test that passed passes, or
``remaining.toml`` says why not; 1: one does not, unexplained; 2: not run.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.corpus import fetch
from benchmarks.corpus.packages import CHECKOUT
from benchmarks.flax_suite.comparing import Compared, as_json, compare, explanations, table
from benchmarks.flax_suite.running import Suite, SuiteError, outcomes, prepare

FLAX = "flax==0.12.8"


def main(arguments: list[str] | None = None) -> int:
    """Run and compare with each Python; the worst exit code."""
    options = _parser().parse_args(arguments)
    cache = options.cache.resolve()
    explained = explanations(options.form)
    found = []
    try:
        source = options.source or _source(cache)
        for python in options.python or [Path(sys.executable)]:
            suite = prepare(python.absolute(), source.resolve(), cache, options.form)
            compared = _compared(suite, options)
            sys.stdout.write(f"\n{suite.folder.name}\n\n{table(compared, explained)}")
            sys.stdout.flush()
            found.append(as_json(suite.folder.name, compared, explained))
    except (SuiteError, fetch.FetchError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(any(one["why"] is None for side in found for one in side["lost"]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flax_suite", description=__doc__)
    parser.add_argument("--form", choices=["lazy", "auto"], default="lazy")
    parser.add_argument("--python", type=Path, action="append", help="may be repeated (this one)")
    parser.add_argument(
        "--file", action="append", metavar="NAME", help="only this; may be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all of it here")
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".corpus")
    parser.add_argument("--source", type=Path, metavar="DIR", help="flax's source, already there")
    parser.add_argument("--fresh", action="store_true", help="run again what has not changed")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one file")
    parser.add_argument("-j", type=int, default=2, dest="jobs", help="files at a time")
    return parser


def _source(cache: Path) -> Path:
    python = fetch.environment(cache, (), _log)
    return fetch.sdist(cache, FLAX, python, _log)


def _compared(suite: Suite, options: argparse.Namespace) -> list[Compared]:
    unknown = sorted({*(options.file or ())} - {*suite.files})
    if unknown:
        raise SuiteError(f"no file of the suite: {', '.join(unknown)}")

    def one(file: str) -> Compared:
        before, after = (
            outcomes(suite, side, file, options.timeout, options.fresh)
            for side in ("before", suite.after)
        )
        compared = compare(file, before, after)
        _log(f"{file}: {compared.kept} of {len(compared.passed)}")
        return compared

    with ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(one, options.file or suite.files))


def _log(message: str) -> None:
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    sys.exit(main())
