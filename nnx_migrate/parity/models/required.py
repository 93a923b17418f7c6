"""What a built-in model has to show: that a required check did not run is a failure."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from nnx_migrate.parity.report import Check, ParityReport


def with_required(report: ParityReport, names: Collection[str]) -> ParityReport:
    """The report in which a check of ``names`` that did not run has failed."""
    checks = tuple(
        Check(one.name, "fail", one.leaves, ("required, and not run", *one.details))
        if one.name in names and one.status == "not_run"
        else one
        for one in report.checks
    )
    failed = any(check.status == "fail" for check in checks)
    verdict = "different" if failed else report.verdict
    return dataclasses.replace(report, checks=checks, verdict=verdict)
