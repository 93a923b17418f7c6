"""``python -m benchmarks.statements``: random plain Python around layers, Linen against auto.

Each class is drawn from its seed, run under Linen, rewritten in a batch with others, and run again.
``--show SEED`` prints one as a program.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from benchmarks.statements.running import batches, compared, program

_BATCH = 10


def main() -> int:
    """Print every class that differs, and the counts."""
    parser = argparse.ArgumentParser(prog="benchmarks.statements", description=__doc__)
    parser.add_argument("-n", type=int, default=100, help="classes that run under Linen")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--reasons", action="store_true", help="say why classes are lazy")
    options = parser.parse_args()
    if options.show is not None:
        print(program(options.show))
        return 0
    counts: Counter[str] = Counter()
    for batch in batches(options.seed, _BATCH):
        for one in compared(batch):
            counts.update(["classes", one.form, *(["different"] if one.differs else [])])
            if options.reasons and one.reason:
                print(f"{one.name} lazy: {one.reason}", flush=True)
            if one.differs:
                print(f"{one.name} ({one.form}) {one.differs}", flush=True)
        print(f"\r{counts['classes']} of {options.n}", end="", file=sys.stderr, flush=True)
        if counts["classes"] >= options.n:
            break
    print(f"\n{dict(counts)}; from seed {options.seed}, {batch[-1][0].name} is the last")
    return 1 if counts["different"] else 0


sys.exit(main())
