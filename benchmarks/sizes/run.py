"""Record the cases of a set, and list the sizes they need or measure who finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.corpus import fetch
from benchmarks.corpus import frozen as corpus
from benchmarks.corpus.comparing import compare
from benchmarks.corpus.packages import Case, Package, cases, packages, requirements
from benchmarks.corpus.rewriting import Rewritten, rewrite
from benchmarks.sizes import frozen
from benchmarks.sizes.measure import (
    MeasureError,
    Row,
    hashes_of,
    report_with_evidence,
    row,
    sizes_of,
)
from benchmarks.sizes.merging import merged
from benchmarks.sizes.traced import Needed, TraceError, needed, record, untraced

Log = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What to run. ``only`` chooses cases by name, or all cases of a package by its name."""

    chosen: str
    cache: Path
    only: str | None = None
    timeout: float = 600.0


@dataclass(frozen=True)
class Fetched:
    """A package, its tree, and the interpreter to run its cases with."""

    package: Package
    tree: Path
    python: Path


@dataclass(frozen=True)
class Recorded:
    """A case, the file it was recorded in, and the sizes it needs."""

    case: Case
    file: Path
    sizes: list[Needed]


def freeze(options: Options, log: Log) -> list[str]:
    """List the sizes of the cases named, or of those that have no list; return what went wrong.

    Every list is written at once. Raises FetchError.
    """
    problems = []
    for fetched, own in _chosen(options, log):
        for case in own:
            if options.only is None and frozen.of_case(case) is not None:
                continue
            try:
                frozen.write(case, _recorded(fetched, case, options, log).sizes)
            except TraceError as error:
                problems.append(f"{case.name}: {error}")
    return problems


def measure(options: Options, log: Log) -> tuple[list[Row], list[str]]:
    """Return one row per case, and what went wrong. Raises FetchError."""
    rows: list[Row] = []
    problems: list[str] = []
    for fetched, own in _chosen(options, log):
        recorded = []
        for case in own:
            try:
                recorded.append(_recorded(fetched, case, options, log))
            except TraceError as error:
                problems.append(f"{case.name}: {error}")
        problems += [line for one in recorded for line in _against_frozen(one)]
        try:
            rows += _measured(fetched, recorded, options, log) if recorded else []
        except MeasureError as error:
            problems.append(f"{fetched.package.name}: {error}")
    return rows, problems + [line for one in rows for line in _failures(one)]


def _chosen(options: Options, log: Log) -> Iterator[tuple[Fetched, list[Case]]]:
    python = fetch.environment(options.cache, requirements(options.chosen), log)
    for package in packages(options.chosen):
        own = [one for one in cases(options.chosen) if one.package == package.name]
        own = [one for one in own if options.only in (None, one.name, one.package)]
        if own:
            tree = fetch.source(options.cache, package, python, log)
            yield Fetched(package, tree, python), own


def _recorded(fetched: Fetched, case: Case, options: Options, log: Log) -> Recorded:
    """Record a case, once as long as it does not change. Raises TraceError."""
    log(f"{case.name}: recording")
    name = f"{case.name.replace('/', '-')}-{case.digest()[:12]}.db"
    file = options.cache / "sizes" / case.set / name
    record(case, fetched.tree, fetched.python, file, options.timeout)
    return Recorded(case, file, needed(file, hashes_of(fetched.tree).get))


def _against_frozen(one: Recorded) -> list[str]:
    if frozen.of_case(one.case) == frozen.listed(one.sizes):
        return []
    return [f"{one.case.name}: other sizes were traced than {frozen.FILE.name} has; see --freeze"]


def _measured(
    fetched: Fetched, recorded: list[Recorded], options: Options, log: Log
) -> Iterator[Row]:
    """Rewrite a package without and with what its cases recorded. Raises MeasureError."""
    package = fetched.package
    folder = options.cache / "sizes" / package.set
    log(f"{package.name}: rewriting")
    plain = rewrite(package, fetched.tree, folder / "rewritten" / package.name, options.timeout)
    if plain.error is not None:
        raise MeasureError(plain.error)
    log(f"{package.name}: rewriting with evidence")
    evidence = merged([one.file for one in recorded], folder / f"{package.name}-all.db")
    evidenced = report_with_evidence(fetched.tree, evidence, options.timeout)
    for one in recorded:
        log(f"{one.case.name}: measuring")
        sizes = sizes_of(one.sizes, plain.report, evidenced)
        built = partial(_is_built, one.case, plain, fetched.python, options)
        yield row(one.case.name, sizes, untraced(one.file), built)


def _is_built(case: Case, rewritten: Rewritten, python: Path, options: Options) -> bool:
    """Whether the case's model, rewritten without evidence, has the traced shapes.

    ``parity`` builds it with the numbers that its own trace shows as size arguments.
    """
    truth = corpus.read()["cases"][case.set][case.name]
    folder = (options.cache / "results").resolve()
    found = compare(case, truth, rewritten, python, folder, options.timeout)
    checks = found.checks or {}
    return all(checks.get(name) == "pass" for name in ("paths", "shapes"))


def _failures(one: Row) -> Iterator[str]:
    if one.wrong:
        yield f"{one.case}: {one.wrong} sizes are wrong: {'; '.join(one.places['wrong'])}"
    if one.unchecked:
        yield (
            f"{one.case}: {one.unchecked} sizes were compared with no trace:"
            f" {'; '.join(one.places['unchecked'])}"
        )
