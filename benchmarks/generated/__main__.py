"""``python -m benchmarks.generated``: random Linen programs before and after both rewrites.

Rows are kept per program in a file of JSON lines; a run with the same sources goes on where it was.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.generated import batches
from benchmarks.generated.batches import Row
from benchmarks.sources import sources_digest

# The tool and what draws programs: rows of other sources say nothing.
_SOURCES = ("nnx_migrate", "benchmarks/generated")
_SHOWN = 5  # faults that are shrunk and shown
_TASKS = 10  # batches of one process: what JAX keeps of every program adds up


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 when a program has a fault."""
    options = _parser().parse_args(arguments)
    wanted = range(options.seed, options.seed + -(-options.n // batches.SIZE))
    path = options.folder / f"{sources_digest(_SOURCES)}.jsonl"
    rows = batches.read(path)
    done = {one.batch for one in rows}
    rows = [one for one in rows if one.batch in wanted]
    with _progress() as bar:
        task = bar.add_task("", total=len(wanted), completed=len(done & {*wanted}))
        for found in _run([one for one in wanted if one not in done], options.workers):
            batches.append(path, found)
            rows += found
            faults = sum(bool(one.faults) for one in rows)
            bar.update(task, advance=1, description=f"{len(rows)} programs, {faults} faults")
    sys.stdout.write(summary(rows))
    faulty = [one for one in rows if one.faults]
    for one in faulty[: 0 if options.no_shrink else _SHOWN]:
        sys.stdout.write(shown(one))
    return int(bool(faulty) or not rows)


def _run(wanted: Sequence[int], workers: int) -> Iterator[list[Row]]:
    # ProcessPoolExecutor hangs when it replaces its only worker (cpython#115634, Python 3.11).
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, maxtasksperchild=_TASKS) as pool:
        yield from pool.imap_unordered(batches.rows_of, wanted)


def summary(rows: Sequence[Row]) -> str:
    """Counts of outcomes by form, of classes, and of what Linen rejects."""
    if not rows:
        return "no program was drawn\n"
    seconds = sum(one.seconds for one in rows)
    rejected = Counter(one.linen.partition(":")[0] for one in rows if one.linen)
    lines = [f"{len(rows)} programs, {len(rows) / seconds * 60:.0f} a minute and core"]
    lines.append(f"rejected by Linen: {rejected.total()} ({dict(rejected)})")
    for form in ("lazy", "auto"):
        kinds = Counter(one.outcomes[form].kind for one in rows)
        lines.append(f"{form}: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
    classes = sum(one.outcomes["auto"].classes for one in rows)
    explicit = sum(one.outcomes["auto"].explicit for one in rows)
    lines.append(f"auto: {explicit} of {classes} classes explicit")
    lines += [
        f"batch {one.batch} number {one.number}: {form}: {fault.kind}: {fault.detail}"
        for one in rows
        for form, fault in one.faults.items()
    ]
    return "\n".join(lines) + "\n"


def shown(row: Row) -> str:
    """A program with a fault, as small as it gets in two minutes."""
    project = batches.programs_of(row.batch)[row.number]
    form, fault = next(iter(row.faults.items()))
    smaller = batches.minimal(project, form, fault.kind)
    return f"\n# batch {row.batch} number {row.number}, {form}: {fault.kind}\n{smaller.text}"


def _progress() -> Progress:
    """A bar on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generated", description=__doc__)
    parser.add_argument("-n", type=_positive, default=1000, help="programs (rounded up to batches)")
    parser.add_argument("--seed", type=int, default=0, help="number of the first batch")
    parser.add_argument("--workers", type=_positive, default=2, help="processes")
    parser.add_argument("--folder", type=Path, default=batches.FOLDER, help="where rows are kept")
    parser.add_argument("--no-shrink", action="store_true", help="only count faults")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text}")
    return number


def environment() -> dict[str, str]:
    """Variables under which programs of the same operations compute the same bits, and soon.

    A product and a sum that XLA contracts into one operation round once, and it contracts more or
    less of them as what stands around them is: without such instructions all programs are compiled
    alike. Compiling is most of the time, and both sides have mostly the same programs.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if platform.machine().lower() in ("x86_64", "amd64"):
        flags = f"{flags} --xla_cpu_max_isa=AVX".strip()
    return {
        "JAX_COMPILATION_CACHE_DIR": str(batches.FOLDER / "compiled"),
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS") or "cpu",
        "XLA_FLAGS": flags,
    }


if __name__ == "__main__":
    os.environ.update(environment())
    sys.exit(main())
