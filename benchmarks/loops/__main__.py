"""``python -m benchmarks.loops [--repeats 9] [--steps N] [small|large]``: step times of both loops against Linen's.

Two programs around a flax `TrainState`, of a small network and of a transformer, are rewritten with
`--loop functional` and `--loop nnx`; the three run in turns in one process. What is printed are ratios
to Linen of the shortest time of a step, and whether all losses are the same bits. Exit code 1: they are not.
"""

from __future__ import annotations

import argparse
import sys


def main(words: list[str]) -> int:
    """Measure, print, and return 1 where losses differ."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.loops",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeats", type=int, default=9, help="turns of each side")
    parser.add_argument("--steps", type=int, help="in one turn (as many as the model is small)")
    parser.add_argument("model", nargs="?", choices=("small", "large"), help="(both)")
    known = parser.parse_args(words)
    from benchmarks.loops.measuring import measure
    from benchmarks.loops.programs import PROGRAMS

    print(
        "| model | loop | step, ms | ratio | CPU time, ratio | losses |\n|---|---|---|---|---|---|"
    )
    equal = True
    for program in PROGRAMS:
        if known.model not in (None, program.name):
            continue
        found = measure(program, known.repeats, known.steps or program.steps)
        linen = found[0]
        for one in found:
            same = one.losses == linen.losses
            equal = equal and same
            print(
                f"| {program.name}: {program.description} | {one.side} | {one.wall * 1e3:.2f} | {one.wall / linen.wall:.2f} "
                f"| {one.cpu / linen.cpu:.2f} | {'equal' if same else '**different**'} |"
            )
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
