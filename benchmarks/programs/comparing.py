"""Two runs that must agree bit for bit: what they logged, predicted and ended with."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Compared:
    """How much was compared, and the first things that differ (or forbid a comparison)."""

    losses: int = 0
    scalars: int = 0
    texts: int = 0
    arrays: int = 0
    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Something was compared, and nothing differs."""
        return not self.differences and self.losses > 1 and self.arrays > 0


def compare(expected: Path, found: Path, *, counts: bool = False) -> Compared:
    """Compare the run in ``found`` with the one in ``expected``.

    A run without two losses, with one that is not finite or with the same loss throughout, or whose
    parameters are all zero, compares nothing: that is a difference, too.

    Args:
      counts: the count of steps is NNX's own, of another dtype: only its value is compared.
    """
    for run in (expected, found):
        if not (run / "state.npz").exists():
            return Compared(differences=(f"no result in {run}",))
    before, after = (json.loads((run / "log.json").read_text("utf-8")) for run in (expected, found))
    losses = [bits for _, name, bits in before["scalars"] if "loss" in name]
    differences = [*_empty(losses), *_logs(before["scalars"], after["scalars"])]
    if before["texts"] != after["texts"]:
        differences.append("other texts are predicted")
    arrays, others = _states(expected / "state.npz", found / "state.npz", counts)
    return Compared(
        len(losses),
        len(before["scalars"]),
        len(before["texts"]),
        arrays,
        (*differences, *others),
    )


def _empty(losses: list[str]) -> list[str]:
    values = [float(bits.rsplit(":", 1)[1]) for bits in losses]
    if len(values) < 2:
        return [f"only {len(values)} losses were logged"]
    if not all(map(math.isfinite, values)):
        return ["a loss is not finite"]
    return ["every loss is the same"] if len({*values}) == 1 else []


def _logs(before: list[list[str]], after: list[list[str]]) -> list[str]:
    if len(before) != len(after):
        return [f"{len(before)} numbers logged before, {len(after)} after"]
    for one, other in zip(before, after, strict=True):
        if one != other:
            return [f"{one[1]} at step {one[0]}: {one[2]} before, {other[1]} {other[2]} after"]
    return []


def _states(before: Path, after: Path, counts: bool) -> tuple[int, list[str]]:
    with np.load(before) as one, np.load(after) as other:
        if {*one.files} != {*other.files}:
            names = sorted({*one.files} ^ {*other.files})
            return 0, [f"only on one side: {', '.join(names[:4])}"]
        if not any(np.any(one[name]) for name in one.files if name.startswith("params/")):
            return 0, ["every parameter is zero"]
        return len(one.files), [
            f"{name}: other values"
            for name in one.files
            if not (counts and name == "step" and int(one[name]) == int(other[name]))
            if one[name].dtype != other[name].dtype
            or one[name].shape != other[name].shape
            or one[name].tobytes() != other[name].tobytes()
        ][:4]
