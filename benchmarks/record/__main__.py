"""``python -m benchmarks.record``: a test-suite-like program with and without ``record``, in turns.

Prints ratios of processor time: of the program itself while its calls are watched, and what tracing
at the end of the process adds. Exit code 1: watching costs more than ``LIMIT``, or no call was
recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from nnx_migrate.evidence.store import counts

ROOT = Path(__file__).parents[2]
WORKLOAD = (sys.executable, "-m", "benchmarks.record.workload")
LIMIT = 1.15  # of the program's own time, while it is watched


@dataclass(frozen=True)
class Run:
    """Seconds of processor time: of the whole process, and of the program inside it."""

    whole: float
    program: float

    @property
    def around(self) -> float:
        """What start and end of the process took."""
        return self.whole - self.program


@dataclass(frozen=True)
class Cost:
    """What recording costs."""

    watching: float  # the program's time with it, over that without
    tracing: float  # seconds at the end of the process
    whole: float  # the whole process with it, over that without
    instances: int


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="runs of each; the best counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args(arguments)
    cost = measure(options.turns)
    sys.stdout.write(text(cost))
    if options.json:
        options.json.write_text(json.dumps(asdict(cost), indent=1) + "\n")
    bad = faults(cost)
    sys.stderr.write("".join(f"error: {line}\n" for line in bad))
    return 1 if bad else 0


def measure(turns: int) -> Cost:
    """The program without and with ``record``, one after the other so often."""
    plain: list[Run] = []
    recorded: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="nnx-migrate-benchmark-") as folder:
        for turn in range(turns):
            file = Path(folder) / f"sizes{turn}.db"
            command = (sys.executable, "-m", "nnx_migrate", "record", "-o", str(file), "--")
            plain.append(timed(WORKLOAD))
            recorded.append(timed((*command, *WORKLOAD)))
        return cost_of(plain, recorded, counts(file)["instances"])


def timed(command: Sequence[str]) -> Run:
    """Run a command to its end; its last line says what the program itself took."""
    before = _children()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return Run(_children() - before, float(done.stdout.split()[-1]))


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cost_of(plain: Sequence[Run], recorded: Sequence[Run], instances: int) -> Cost:
    """From the best of each: whatever else runs on the machine only ever adds."""
    program = min(one.program for one in plain)
    around = min(one.around for one in plain)
    watched = min(one.program for one in recorded)
    traced = min(one.around for one in recorded)
    whole = (watched + traced) / (program + around)
    return Cost(watched / program, max(traced - around, 0.0), whole, instances)


def text(cost: Cost) -> str:
    """Three lines for a person."""
    return (
        f"the program while its calls are watched: {cost.watching:.3f} of its time without\n"
        f"tracing when the process ends: {cost.tracing:.1f} s for {cost.instances} instances\n"
        f"the whole process: {cost.whole:.2f} of its time without\n"
    )


def faults(cost: Cost) -> list[str]:
    """What is not as it should be."""
    found = []
    if not cost.instances:
        found.append("nothing was recorded")
    if cost.watching > LIMIT:
        found.append(f"watching costs {cost.watching:.3f}, more than {LIMIT}")
    return found


if __name__ == "__main__":
    sys.exit(main())
