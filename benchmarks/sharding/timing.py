"""Time two functions against each other, turn by turn, so that load hits both."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
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


@dataclass(frozen=True)
class Pair:
    """Two functions that do the same work on so many leaves."""

    what: str
    leaves: int
    ours: Callable[[], object]
    flax: Callable[[], object]


def against(pairs: Sequence[Pair], turns: int) -> list[Ratio]:
    """The best of ``turns`` runs of each, after one run of each.

    All functions alternate, of all pairs: sizes that are compared meet the same load.
    """
    times: list[list[tuple[float, float]]] = [[] for _ in pairs]
    for pair in pairs:
        pair.ours(), pair.flax()
    for _ in range(turns):
        for pair, found in zip(pairs, times, strict=True):
            found.append((seconds(pair.ours), seconds(pair.flax)))
    return [
        Ratio(pair.what, pair.leaves, *map(min, zip(*found, strict=True)))
        for pair, found in zip(pairs, times, strict=True)
    ]


def seconds(function: Callable[[], object]) -> float:
    """Processor time of one call, without garbage collection in between."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        function()
        return time.process_time() - start
    finally:
        gc.enable()


def growth(small: Ratio, large: Ratio) -> float:
    """Our time per leaf at the larger size by that at the smaller; 1 is linear."""
    return (large.ours / large.leaves) / (small.ours / small.leaves)
