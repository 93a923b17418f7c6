"""What a built-in model has to show: that a required check did not run is a failure."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection

import jax

from nnx_migrate.parity.models.options import ModelOptions
from nnx_migrate.parity.report import Check, ParityReport


def final_report(
    report: ParityReport, options: ModelOptions, names: Collection[str], start: float
) -> ParityReport:
    """The report on a model begun at ``start`` (``time.monotonic``) that has to show ``names``."""
    return dataclasses.replace(
        with_required_checks(report, names),
        model=f"{options.model.name} (size={options.size})",
        processes=jax.process_count() if options.distributed else 1,
        seconds=round(time.monotonic() - start, 3),
    )


def with_required_checks(report: ParityReport, names: Collection[str]) -> ParityReport:
    """The report in which a check of ``names`` has failed that did not run.

    Equal numbers do not make up for a required program: both sides of a model are the same code.
    """
    checks = tuple(_require(one, report) if one.name in names else one for one in report.checks)
    has_failures = any(check.status == "fail" for check in checks)
    verdict = "different" if has_failures else report.verdict
    return dataclasses.replace(report, checks=checks, verdict=verdict)


def _require(check: Check, report: ParityReport) -> Check:
    if check.status == "not_run":
        found = "required, and not run"
    elif check.name == "program" and report.verdict == "numerically_equal":
        found = "required to be the same, by published rules at most"
    else:
        return check
    return Check(check.name, "fail", check.leaves, (found, *check.details))
