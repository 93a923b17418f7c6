"""A comparison with what it was made from, for those who need more of it than the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnx_migrate.parity.evaluation.results import SideResult
    from nnx_migrate.parity.report import ParityReport


@dataclass(frozen=True)
class Compared:
    """A report and the two sides it is on.

    ``platform`` is what they ran on, with ``devices`` devices; "" and 0 where nothing ran.
    """

    report: ParityReport
    linen: SideResult
    nnx: SideResult
    platform: str = ""
    devices: int = 0
