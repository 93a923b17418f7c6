"""One case, from both modules to the report, in this process."""

from __future__ import annotations

import dataclasses
import functools
import time

from nnx_migrate.parity.case import ParityCase, describe_mesh
from nnx_migrate.parity.checks.compare import compare
from nnx_migrate.parity.checks.modes import pairs
from nnx_migrate.parity.evaluation.results import SideResult
from nnx_migrate.parity.modes import Mode
from nnx_migrate.parity.report import ParityReport, peak_rss_bytes, versions
from nnx_migrate.parity.sides import bisect
from nnx_migrate.parity.sides.linen import evaluate_linen
from nnx_migrate.parity.sides.nnx import evaluate_nnx


def check(case: ParityCase) -> ParityReport:
    """Evaluate both sides of a case, each alone, and compare them.

    Raises BadCase when the case itself cannot be run (no Linen module, one that cannot be
    initialised, a mesh that does not fit). What is wrong with the NNX side is in the report.
    """
    start = time.monotonic()
    linen = evaluate_linen(case)
    case = dataclasses.replace(case, compiled=not linen.eager_reason, modes=modes_of(linen))
    nnx = evaluate_nnx(case)
    report = judge(case, linen, nnx)
    if wants_submodules(report):
        # Recording every submodule is slow, so it waits until there is something to locate.
        ours = evaluate_linen(case, submodules=True, numbers=False)
        theirs = evaluate_nnx(case, submodules=True, numbers=False)
        report = with_location(report, case, ours, theirs)
    return dataclasses.replace(report, seconds=round(time.monotonic() - start, 3))


def modes_of(linen: SideResult) -> tuple[Mode, ...]:
    """The modes that the Linen side ran, which the other side has to run, too."""
    return tuple(run.mode for run in linen.modes)


def wants_submodules(report: ParityReport) -> bool:
    """Whether both sides should be evaluated again with their submodules' outputs."""
    return report.check("forward").status == "fail" and report.check("forward").leaves > 0


def with_location(
    report: ParityReport, case: ParityCase, linen: SideResult, nnx: SideResult
) -> ParityReport:
    """Return the report with the first submodule that differs, or why it was not found."""
    submodule_paths = {path.partition("/")[2].rpartition("/")[0] for path in nnx.shapes}
    find = functools.partial(
        bisect.first_difference, tolerance=case.tolerance, submodule_paths=submodule_paths
    )
    found = find(linen.submodules, nnx.submodules)
    others = {run.mode.name: run for run in nnx.modes}
    for run in linen.modes:
        theirs = others.get(run.mode.name, run)
        found = found or find(run.submodules, theirs.submodules)
    problems = [
        f"first_difference: the {side.stack} submodules were not recorded: "
        f"{side.errors['submodules']}"
        for side in (linen, nnx)
        if not side.submodules and "submodules" in side.errors
    ]
    return dataclasses.replace(
        report, first_difference=found, not_checked=(*report.not_checked, *problems)
    )


def judge(
    case: ParityCase, linen: SideResult, nnx: SideResult, seconds: float = 0.0
) -> ParityReport:
    """Return the report on two sides, evaluated anywhere.

    Of ``case`` only its settings are read (``rngs``, ``collections``, ``tolerance``, ``mesh``).
    """
    found = compare(case, linen, nnx)
    report = ParityReport(
        verdict=found.verdict,
        checks=found.checks,
        not_checked=found.not_checked,
        rules_used=found.rules_used,
        modes=tuple(one.mode.name for one, _ in pairs(linen, nnx)),
        model=linen.model,
        mesh=describe_mesh(case),
        versions=versions(),
        seconds=round(seconds, 3),
        peak_rss_bytes=peak_rss_bytes(),
    )
    return with_location(report, case, linen, nnx)
