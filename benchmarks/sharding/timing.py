"""Time two functions against each other, turn by turn, so that load hits both."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """One comparison: best times in seconds, ours and flax's, for so many leaves."""

    what: str
    leaves: int
    ours: float
    flax: float

    @property
    def ratio(self) -> float:
        """Our time by flax's; below 1 is faster."""
        return self.ours / self.flax


def against(
    what: str, leaves: int, ours: Callable[[], object], flax: Callable[[], object], turns: int
) -> Ratio:
    """The best of ``turns`` runs of each, alternating, after one run of each."""
    ours(), flax()
    times = [(seconds(ours), seconds(flax)) for _ in range(turns)]
    return Ratio(what, leaves, min(one for one, _ in times), min(other for _, other in times))


def seconds(function: Callable[[], object]) -> float:
    """Wall time of one call, without garbage collection in between."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        function()
        return time.perf_counter() - start
    finally:
        gc.enable()


def growth(small: Ratio, large: Ratio) -> float:
    """Our time per leaf at the larger size by that at the smaller; 1 is linear."""
    return (large.ours / large.leaves) / (small.ours / small.leaves)
