"""Checks over all runs of a case: the call as it is given, and in the other modes of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from nnx_migrate.parity.case import ParityCase, settings_in_mode
from nnx_migrate.parity.evaluation.results import ModeRun, SideResult
from nnx_migrate.parity.report import Check, Status
from nnx_migrate.parity.values import EMPTY

# Checks of what every run yields: where one does not, that is said.
_OUTPUTS = ("forward", "loss", "gradients", "collections")

OneRun = Callable[[ParityCase, SideResult, SideResult], Check]


def pairs(linen: SideResult, nnx: SideResult) -> Iterator[tuple[ModeRun, ModeRun]]:
    """Yield the runs of every mode that both sides have."""
    others = {run.mode.name: run for run in nnx.modes if not run.missing}
    for run in linen.modes:
        if not run.missing and run.mode.name in others:
            yield run, others[run.mode.name]


def with_programs(linen: SideResult, nnx: SideResult) -> tuple[SideResult, SideResult]:
    """Both sides with the programs that both have in other modes among their own."""
    ours, theirs = dict(linen.programs), dict(nnx.programs)
    features, others = dict(linen.features), dict(nnx.features)
    debug_programs, elsewhere = dict(linen.debug_programs), dict(nnx.debug_programs)
    for one, other in pairs(linen, nnx):
        for name in one.programs.keys() & other.programs.keys():
            long = f"{name} with {one.mode.name}"
            ours[long], theirs[long] = one.programs[name], other.programs[name]
            features[long], others[long] = one.features.get(name, ()), other.features.get(name, ())
            debug_programs[long], elsewhere[long] = (
                one.debug_programs.get(name, ""),
                other.debug_programs.get(name, ""),
            )
    return (
        dataclasses.replace(linen, programs=ours, features=features, debug_programs=debug_programs),
        dataclasses.replace(nnx, programs=theirs, features=others, debug_programs=elsewhere),
    )


def over_modes(
    check: OneRun, case: ParityCase, linen: SideResult, nnx: SideResult
) -> tuple[Check, tuple[str, ...]]:
    """Return a check of all runs, and what of it did not run in a mode although it did in the case."""
    main = check(case, linen, nnx)
    further = [
        (one.mode.name, _of_mode(check, case, linen, nnx, one, other))
        for one, other in pairs(linen, nnx)
    ]
    statuses = [main.status, *(found.status for _, found in further)]
    status: Status = "fail" if "fail" in statuses else "pass" if "pass" in statuses else "not_run"
    failures = [
        f"with {mode}: {line}"
        for mode, found in further
        if found.status == "fail"
        for line in found.details
    ]
    notes = [
        f"with {mode}: {found.leaves} compared" for mode, found in further if found.status == "pass"
    ]
    own = main.details
    if main.status == "not_run" != status:
        own = tuple(f"in the case as it is: {line}" for line in own)
    details = (*own, *failures) if main.status == "fail" else (*failures, *own)
    left_out = tuple(
        f"{main.name} with {mode}: {found.details[0]}"
        for mode, found in further
        if found.status == "not_run" != main.status and main.name in _OUTPUTS
    )
    leaves = main.leaves + sum(found.leaves for _, found in further)
    return Check(main.name, status, leaves, (*details, *notes)), left_out


def _of_mode(
    check: OneRun,
    case: ParityCase,
    linen: SideResult,
    nnx: SideResult,
    one: ModeRun,
    other: ModeRun,
) -> Check:
    """The check of one mode. That both sides are zero or NaN there shows nothing, and is no fault."""
    found = check(settings_in_mode(case, one.mode), _as_side(linen, one), _as_side(nnx, other))
    if found.status == "fail" and all(line.endswith(EMPTY) for line in found.details):
        return Check(found.name, "not_run", 0, found.details[:1])
    return found


def _as_side(side: SideResult, run: ModeRun) -> SideResult:
    return dataclasses.replace(
        side,
        first=run.first,
        second=run.second,
        others={},
        errors=run.errors,
        skip_reasons=run.skip_reasons,
        writes=(),
    )
