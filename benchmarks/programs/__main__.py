"""``python -m benchmarks.programs [--form lazy|auto] [--loop nnx] [NAME...]``: flax's examples as programs.

Each of flax 0.12.8's nine Linen examples trains for some steps on tiny synthetic data of the real
shapes, before and after ``rewrite``, the second where ``flax.linen`` cannot be imported. Compared bit
for bit: every number and text that it logs, the whole training state at the end, and the same two
steps on from the other side's checkpoint. Its own tests run on both sides. The model is also built
as an NNX module. With ``--loop nnx`` the training loop is NNX's where the rewriter proves it; such a
program has no checkpoint of Linen's, and only its training and its tests are compared. Exit code 1: something differs, or nothing was compared; 2: it could not run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.corpus import fetch
from benchmarks.corpus.packages import CHECKOUT
from benchmarks.programs.judging import judge
from benchmarks.programs.programs import PROGRAMS, ProgramError
from benchmarks.programs.running import Runner
from benchmarks.programs.table import table

FLAX = "flax==0.12.8"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def main(arguments: list[str] | None = None) -> int:
    """Run, compare, print; the exit code."""
    options = _parser().parse_args(arguments)
    cache = options.cache.resolve()
    unknown = {*options.name} - {one.name for one in PROGRAMS}
    if unknown:
        _log(f"error: no program {', '.join(sorted(unknown))}; there are "
             f"{', '.join(one.name for one in PROGRAMS)}")  # fmt: skip
        return 2
    chosen = [one for one in PROGRAMS if not options.name or one.name in options.name]
    forms = options.form or (["lazy", "auto"] if options.loop == "functional" else ["auto"])
    try:
        python = options.python or _environment(cache)
        source = options.source or fetch.sdist(cache, FLAX, python, _log)
        runner = Runner(python.absolute(), cache / "programs", options.timeout)
        verdicts = judge(runner, chosen, forms, options.loop, source, not options.no_tests, _log)
    except (ProgramError, fetch.FetchError) as error:
        _log(f"error: {error}")
        return 2
    sys.stdout.write(table(verdicts))
    return int(not verdicts.ok)


def _environment(cache: Path) -> Path:
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    return fetch.environment(cache / "programs", pins, _log)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.programs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help="programs to run (all)")
    parser.add_argument("--form", action="append", choices=["lazy", "auto"], help="(both)")
    parser.add_argument("--loop", choices=["functional", "nnx"], default="functional")
    parser.add_argument(
        "--python", type=Path, help="has requirements.txt installed (an environment made here)"
    )
    parser.add_argument("--source", type=Path, metavar="DIR", help="flax's source, already there")
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".corpus")
    parser.add_argument("--no-tests", action="store_true", help="leave the programs' tests out")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one process")
    return parser


def _log(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
