"""What every check is made with: its verdict on a list of failures, and bit-exact differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from nnx_migrate.parity.evaluation.results import SideResult
from nnx_migrate.parity.report import Check, Status
from nnx_migrate.parity.values import (
    Arrays,
    describe_difference,
    emptiness,
    relative_difference,
    same_bits,
    within,
)

_SHOWN = 20
# Stages that only run where the case asks for them.
_OPTIONAL_STAGES = ("specs", "specs_after_step", "losses_over_steps")


def check_of(name: str, leaves: int, failures: Iterable[str], notes: Iterable[str] = ()) -> Check:
    """Return a check that passes when nothing failed; the first failures are spelled out."""
    details = list(failures)
    status: Status = "fail" if details else "pass"
    if len(details) > _SHOWN:
        details[_SHOWN:] = [f"and {len(details) - _SHOWN} more"]
    return Check(name, status, leaves, (*details, *notes))


def few(names: Sequence[str], most: int, *, between: str = ", ", more: str = "more") -> str:
    """The first names of a list: ``a, b and 3 more``."""
    rest = f" and {len(names) - most} {more}" if len(names) > most else ""
    return between.join(names[:most]) + rest


def by_path(paths: Iterable[str]) -> list[str]:
    """Parameters first: the optimizer's state is laid out as they are."""
    return sorted(paths, key=lambda path: (not path.startswith("params/"), path))


def one_sided_lines(ours: Iterable[str], theirs: Iterable[str]) -> list[str]:
    """Name what only one of the two sides has, in turns: what is shown first has both names."""
    left, right = set(ours), set(theirs)
    missing = [f"{path}: only in Linen" for path in by_path(left - right)]
    more = [f"{path}: only in NNX" for path in by_path(right - left)]
    return [line for pair in zip_longest(missing, more) for line in pair if line is not None]


def common_count(ours: Arrays, theirs: Arrays) -> int:
    """Count what both sides have."""
    return len(ours.keys() & theirs.keys())


def differences(
    ours: Arrays, theirs: Arrays, tolerance: float | None
) -> tuple[list[str], list[str]]:
    """Return what fails, the worst first, and what only passes by the tolerance of the case.

    A fault shows in many leaves, of which the first few are shown.
    """
    mismatches, notes = [], []
    for path in ours:
        if path not in theirs or same_bits(ours[path], theirs[path]):
            continue
        line = f"{path or 'output'}: {describe_difference(ours[path], theirs[path])}"
        if tolerance is not None and within(ours[path], theirs[path], tolerance):
            notes.append(f"within the case's tolerance {tolerance:g}: {line}")
        else:
            mismatches.append((relative_difference(ours[path], theirs[path]), line))
    worst_first = sorted(mismatches, key=lambda one: one[0], reverse=True)
    failures = one_sided_lines(ours, theirs) + [line for _, line in worst_first]
    for side, arrays in (("Linen", ours), ("NNX", theirs)):
        empty = emptiness(arrays.values())
        if empty:
            failures.append(f"{side}: {empty}")
    return failures, notes


def blocked_check(stage: str, linen: SideResult, nnx: SideResult) -> Check | None:
    """Return the check of a stage that one side could not run."""
    if stage in linen.errors and stage in _OPTIONAL_STAGES:
        return Check(
            stage, "fail", 0, (f"asked for, and Linen itself cannot: {linen.errors[stage]}",)
        )
    if stage in linen.errors:
        return Check(stage, "not_run", 0, (f"Linen itself cannot: {linen.errors[stage]}",))
    if "construct" in nnx.errors:
        return Check(stage, "fail", 0, ("nothing was compared: the NNX model was not built",))
    if stage in nnx.errors:
        return Check(stage, "fail", 0, (f"NNX: {nnx.errors[stage]}",))
    if stage in linen.skip_reasons and stage in nnx.skip_reasons:
        return Check(stage, "not_run", 0, (linen.skip_reasons[stage],))
    if stage in linen.skip_reasons or stage in nnx.skip_reasons:
        side, reason = (
            ("Linen", linen.skip_reasons[stage])
            if stage in linen.skip_reasons
            else ("NNX", nnx.skip_reasons[stage])
        )
        return Check(stage, "fail", 0, (f"only on the {side} side: {reason}",))
    return None
