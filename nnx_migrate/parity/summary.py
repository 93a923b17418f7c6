"""What a person sees of a report: the verdict, the checks, what differs and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnx_migrate.parity.report import ParityReport


def summary(name: str, report: ParityReport, *, every_check: bool = False) -> Iterator[str]:
    """Yield the verdict, every check that failed with its first details, and what was not run.

    With ``every_check`` a table of the checks that ran comes after the verdict.
    """
    counts = Counter(check.status for check in report.checks)
    counts_text = f"{counts['pass']} passed, {counts['fail']} failed, {counts['not_run']} not run"
    yield f"{name}: {report.verdict} ({counts_text}; {report.seconds:.1f} s)"
    if report.modes:
        yield f"  run once more with {'; and with '.join(report.modes)}"
    if every_check:
        yield from _table(report)
    for check in report.checks:
        if check.status == "fail":
            yield f"  fail {check.name}: {_shorten(check.details)}"
    first = report.first_difference
    if first is not None:
        yield (
            f"  first difference at {first['path'] or 'the model itself'}: "
            f"Linen {first['linen']}; NNX {first['nnx']}"
        )
    if report.not_checked:
        yield f"  not checked: {_shorten(report.not_checked, most=len(report.not_checked))}"


def _table(report: ParityReport) -> Iterator[str]:
    ran = [check for check in report.checks if check.status != "not_run"]
    width = max((len(check.name) for check in ran), default=0)
    for check in ran:
        yield f"  {check.name:{width}}  {check.status}  {check.leaves:>6} compared"


def _shorten(details: Sequence[str], most: int = 3) -> str:
    """Join the first details; the report has all of them."""
    rest = [f"and {len(details) - most} more"] if len(details) > most else []
    return "; ".join([*details[:most], *rest])
