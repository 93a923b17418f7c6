"""Run a file case: both sides in processes of their own, then the comparison of their results."""

from __future__ import annotations

import dataclasses
import math
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnx_migrate.model import MigrationMap
from nnx_migrate.parity.files.case_file import CaseError
from nnx_migrate.parity.files.process import Job, Side, SideRun, run_side
from nnx_migrate.parity.files.trees import BadTree, open_trees
from nnx_migrate.parity.files.unknown_names import require_known_names

if TYPE_CHECKING:
    from nnx_migrate.parity.comparison_result import ComparisonResult
    from nnx_migrate.parity.report import ParityReport


@dataclass(frozen=True)
class FileOptions:
    """What the command line can say about a file case; None leaves it to the case's ``CASE``.

    With ``keeps_state`` the training state after the last step is kept.
    """

    seed: int | None = None
    steps: int | None = None
    mesh: Mapping[str, int] | None = None
    shard_mode: str | None = None
    devices: int | None = None
    keeps_state: bool = False

    def overrides(self) -> dict[str, Any]:
        """Return what replaces keys of ``CASE``."""
        values = {
            "seed": self.seed,
            "steps": self.steps,
            "mesh": self.mesh,
            "shard_mode": self.shard_mode,
            "keeps_state": self.keeps_state or None,
        }
        return {key: value for key, value in values.items() if value is not None}


def run_case_file(
    path: str | Path,
    before: str | Path | None = None,
    after: str | Path | None = None,
    map: str | Path | None = None,
    options: FileOptions | None = None,
    timeout: float | None = None,
) -> ParityReport:
    """Compare the two sides of a case file and return the report; see `compare_case_file`."""
    return compare_case_file(path, before, after, map, options, timeout).report


def compare_case_file(
    path: str | Path,
    before: str | Path | None = None,
    after: str | Path | None = None,
    map: str | Path | None = None,
    options: FileOptions | None = None,
    timeout: float | None = None,
) -> ComparisonResult:
    """Compare the two sides of a case file.

    ``before`` and ``after`` are directories or git revisions (see `files.trees`), ``map`` a
    migration map, ``timeout`` the seconds one side may take. Raises
    :class:`~nnx_migrate.parity.files.case_file.CaseError` with a one-line message when the case cannot
    be run; nothing is left behind in any case.
    """
    options = options or FileOptions()
    case = Path(path)
    if not case.is_file():
        raise CaseError(f"case={path}: no such file")
    if map is not None:
        _require_map(Path(map))
    start = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="nnx-migrate-case-"))
    try:
        with open_trees(case, _text(before), _text(after)) as trees:
            old = job_of("before", case, trees.before, directory, map, options)
            new = job_of("after", case, trees.after, directory, map, options)
            found = compare(old, new, timeout)
        require_known_names(found.settings, case.name, found.linen, found.nnx)
        report = dataclasses.replace(found.report, seconds=round(time.monotonic() - start, 3))
        return dataclasses.replace(found, report=report)
    except BadTree as error:
        raise CaseError(str(error)) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _require_map(file: Path) -> None:
    """Refuse a map that cannot be used before anything runs."""
    from nnx_migrate.parity.instantiation.migration_map import BadMap, load_map

    if not file.is_file():
        raise CaseError(f"map={file}: no such file")
    try:
        load_map(file)
    except BadMap as error:
        raise CaseError(str(error)) from error


def compare(before: Job, after: Job, timeout: float | None = None) -> ComparisonResult:
    """Run both sides and judge them; where they differ, again with every submodule's output."""
    from nnx_migrate.parity import run

    first = run_side(before, timeout)
    after = following(first, after)
    found = judge((before, after), [first, run_side(after, timeout)])
    if not run.wants_submodules(found.report):
        return found
    again = (
        dataclasses.replace(before, submodules=True),
        dataclasses.replace(after, submodules=True),
    )
    return judge(again, [run_side(job, timeout) for job in again])


def following(before: SideRun, after: Job) -> Job:
    """The after side's job, run as the before side could be: compiled or not, in the same modes."""
    before_settings = {name: before.settings[name] for name in ("compiled", "modes")}
    return dataclasses.replace(after, overrides={**after.overrides, **before_settings})


def judge(jobs: tuple[Job, Job], runs: Sequence[SideRun]) -> ComparisonResult:
    """Compare the results that the before and the after job left."""
    from nnx_migrate.parity import run
    from nnx_migrate.parity.case import ParityCase
    from nnx_migrate.parity.comparison_result import ComparisonResult
    from nnx_migrate.parity.evaluation import results
    from nnx_migrate.parity.instantiation.map_files import UNKNOWN
    from nnx_migrate.parity.instantiation.migration_map import load_map

    linen, nnx = (results.load(job.result) for job in jobs)
    report = run.judge(ParityCase(**runs[0].settings), linen, nnx)
    peak = max(report.peak_rss_bytes, *(side.peak_rss_bytes for side in runs))
    file = jobs[1].map
    content = load_map(file) if file is not None else MigrationMap()
    notes = (UNKNOWN,) if content.classes and not content.files else ()
    report = dataclasses.replace(
        report, peak_rss_bytes=peak, not_checked=(*report.not_checked, *notes)
    )
    return ComparisonResult(report, linen, nnx, runs[0].platform, runs[0].devices, runs[0].settings)


def job_of(
    side: Side,
    case: Path,
    entries: tuple[Path, ...],
    directory: Path,
    map: str | Path | None,
    options: FileOptions,
) -> Job:
    """One side of a case; ``directory`` takes its results."""
    devices = options.devices
    if devices is None and options.mesh is not None:
        devices = math.prod(options.mesh.values())
    return Job(
        side=side,
        case=case.resolve(),
        path_entries=entries,
        directory=directory,
        map=Path(map).resolve() if map is not None else None,
        devices=devices,
        overrides=options.overrides(),
    )


def _text(tree: str | Path | None) -> str | None:
    return None if tree is None else str(tree)
