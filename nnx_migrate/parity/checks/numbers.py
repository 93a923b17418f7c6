"""Checks of what a run of the call computed: outputs, loss, gradients, random draws, collections."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from nnx_migrate.parity.case import ParityCase
from nnx_migrate.parity.checks.base import blocked_check, check_of, common_count, differences
from nnx_migrate.parity.evaluation.constant_key import own_streams
from nnx_migrate.parity.evaluation.measure import INPUT_GRADIENTS, LOSS
from nnx_migrate.parity.evaluation.results import Numbers, SideResult
from nnx_migrate.parity.report import Check
from nnx_migrate.parity.values import (
    EMPTY,
    Arrays,
    describe_difference,
    emptiness,
    same_bits,
    same_finite,
)

NOTHING = "a call returns nothing: only the variables are compared"


def returns_nothing(linen: SideResult) -> bool:
    """Whether a call returns and changes nothing, but the initial values show something."""
    run = linen.first
    has_values = emptiness(linen.init_values.values()) is None
    return has_values and not (run.outputs or run.plain or run.collections)


def compare_arrays(
    stage: str,
    pick: Callable[[Numbers], Arrays],
    case: ParityCase,
    linen: SideResult,
    nnx: SideResult,
) -> Check:
    """Compare the arrays that ``pick`` takes of a run."""
    not_run_check = blocked_check(stage, linen, nnx)
    if not_run_check is not None:
        return not_run_check
    ours, theirs = pick(linen.first), pick(nnx.first)
    failures, notes = differences(ours, theirs, case.tolerance)
    return check_of(stage, common_count(ours, theirs), failures, notes)


def gradients(case: ParityCase, linen: SideResult, nnx: SideResult) -> Check:
    """Compare those of the parameters, and those of the float inputs that Linen could take."""
    check = compare_arrays("gradients", lambda run: run.gradients, case, linen, nnx)
    ours, theirs = linen.first.input_gradients, nnx.first.input_gradients
    if not ours or "construct" in nnx.errors or LOSS in nnx.errors:
        return check
    error = nnx.errors.get(INPUT_GRADIENTS)
    failures, notes = differences(ours, theirs, case.tolerance)
    # They may be all zero: a model that rounds its inputs trains all the same.
    lines = [f"of inputs: NNX: {error}"] if error else []
    lines += [line for line in failures if not (error or line.endswith(EMPTY))]
    leaves = check.leaves + common_count(ours, theirs)
    if lines:
        details = check.details if check.status == "fail" else ()
        return check_of("gradients", leaves, (*details, *lines), notes)
    return dataclasses.replace(
        check,
        leaves=check.leaves if check.status == "not_run" else leaves,
        details=(*check.details, *notes),
    )


def forward(case: ParityCase, linen: SideResult, nnx: SideResult) -> Check:
    """Compare what a call returns, arrays and values of Python, on other inputs too."""
    ours, theirs = linen.first, nnx.first
    if ours.outputs or theirs.outputs or not theirs.structure:
        check = compare_arrays("forward", lambda run: run.outputs, case, linen, nnx)
    elif returns_nothing(linen) and not theirs.plain:
        check = Check("forward", "not_run", 0, (NOTHING,))
    else:
        failures = [] if ours.plain or theirs.plain else ["nothing was compared"]
        check = check_of("forward", len(ours.plain), failures)
    lines = [
        f"{path or 'output'}: Linen {ours.plain.get(path)}, NNX {theirs.plain.get(path)}"
        for path in sorted(ours.plain.keys() | theirs.plain.keys())
        if theirs.structure and ours.plain.get(path) != theirs.plain.get(path)
    ]
    if theirs.structure and ours.structure != theirs.structure:
        lines[:0] = [
            f"the outputs are built differently: Linen {ours.structure}, NNX {theirs.structure}"
        ]
    lines += _on_other_inputs(linen, nnx) if case.tolerance is None else ()
    return Check("forward", "fail", check.leaves, (*lines, *check.details)) if lines else check


def _on_other_inputs(linen: SideResult, nnx: SideResult) -> Iterator[str]:
    """Yield one line per output that differs there, where it is finite on one side at least."""
    for how, run in linen.others.items():
        ours, theirs = run.outputs, nnx.others[how].outputs if how in nnx.others else {}
        for path in ours.keys() & theirs.keys():
            if not same_finite(ours[path], theirs[path]):
                found = describe_difference(ours[path], theirs[path])
                yield f"{how}: {path or 'output'}: {found}"


def _of_keys(ours: Numbers, theirs: Numbers) -> Iterator[str]:
    """Which sites, lanes, steps and calls have a key of their own: under one key all agree."""
    if None not in (ours.keys, theirs.keys) and ours.keys != theirs.keys:
        yield (
            f"a call makes random numbers of {ours.keys} different keys on the Linen side, of "
            f"{theirs.keys} on the NNX side"
        )
    if theirs.repeated_keys:
        yield (
            f"one more call of the NNX model draws {theirs.repeated_keys} of its {theirs.keys} keys again"
        )


def rng(case: ParityCase, linen: SideResult, nnx: SideResult) -> Check:
    """Compare the run under another key, which has to show on both sides."""
    streams = own_streams(case.rngs)
    if not streams:
        return Check("rng", "not_run", 0, ("the case has no rngs",))
    not_run_check = blocked_check("forward", linen, nnx)
    if not_run_check is not None:
        return Check("rng", not_run_check.status, 0, not_run_check.details)
    random = {"Linen": _is_random(linen), "NNX": _is_random(nnx)}
    if not any(random.values()):
        reason = f"{', '.join(streams)}: no effect on either side (is dropout off in this case?)"
        return Check("rng", "not_run", 0, (reason,))
    failures = [
        f"the keys have no effect on the {side} side" for side, yes in random.items() if not yes
    ]
    failures += _of_keys(linen.first, nnx.first)
    leaves, notes = 0, list[str]()
    numeric: list[str] = []
    for name in ("outputs", "loss", "gradients", "input_gradients"):
        ours, theirs = getattr(linen.second, name), getattr(nnx.second, name)
        if not ours and not theirs:
            continue
        found, remarks = differences(ours, theirs, case.tolerance)
        numeric += [f"{name}: {line}" for line in found]
        notes += remarks
        leaves += common_count(ours, theirs)
    # A key that is drawn and not used has no effect; a bridge draws one of every stream.
    if (failures or numeric or notes) and not nnx.bridges:
        failures += _of_one_side(streams, linen.first, nnx.first)
    return check_of("rng", leaves, [*failures, *numeric], notes)


def _of_one_side(streams: Sequence[str], ours: Numbers, theirs: Numbers) -> Iterator[str]:
    """The streams of the case that only one side draws from, in this run."""
    for side, mine, other in (("Linen", ours, theirs), ("NNX", theirs, ours)):
        alone = [
            name for name in streams if name in mine.stream_names and name not in other.stream_names
        ]
        instead = [name for name in other.stream_names if name not in mine.stream_names]
        what = f", the other from {', '.join(instead)}" if instead else ""
        if alone:
            yield f"only the {side} side draws from {', '.join(alone)}{what}"


def _is_random(side: SideResult) -> bool:
    """Whether the two keys gave different outputs or gradients."""
    pairs = (
        (side.first.outputs, side.second.outputs),
        (side.first.gradients, side.second.gradients),
    )
    return any(not same_bits(one[path], other[path]) for one, other in pairs for path in one)


def collections(case: ParityCase, linen: SideResult, nnx: SideResult) -> Check:
    """Compare the mutable collections after a call."""
    others = [path for path in nnx.writes if path.split("/", 1)[0] not in case.collections]
    notes = [f"NNX writes variables that are not mutable in this case: {', '.join(others)}"]
    if not case.collections:
        reason = notes[0] if others else "the case has no mutable collections"
        return Check("collections", "not_run", 0, (reason,))
    not_run_check = blocked_check("forward", linen, nnx)
    if not_run_check is not None:
        return Check("collections", not_run_check.status, 0, not_run_check.details)
    ours, theirs = linen.first.collections, nnx.first.collections
    if case.stateless and not (ours or theirs or others):
        return Check("collections", "not_run", 0, ("no variable is there, as the case says",))
    failures, remarks = differences(ours, theirs, case.tolerance)
    return check_of(
        "collections", common_count(ours, theirs), failures, [*remarks, *(notes if others else ())]
    )
