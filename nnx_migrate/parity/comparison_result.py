"""A comparison with what it was made from, for those who need more of it than the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nnx_migrate.parity.evaluation.results import SideResult
    from nnx_migrate.parity.report import ParityReport


@dataclass(frozen=True)
class ComparisonResult:
    """A report and the two sides it is on.

    ``platform`` is what they ran on, with ``devices`` devices; "" and 0 where nothing ran. ``settings``
    are those of a case file that the comparison reads.
    """

    report: ParityReport
    linen: SideResult
    nnx: SideResult
    platform: str = ""
    devices: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
