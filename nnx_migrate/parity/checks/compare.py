"""Comparison of two sides: every check, and the verdict. Knows neither Linen nor NNX."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nnx_migrate.parity.case import ParityCase
from nnx_migrate.parity.checks import numbers, programs
from nnx_migrate.parity.checks import shardings as compare_shardings
from nnx_migrate.parity.checks.base import (
    blocked_check,
    check_of,
    common_count,
    differences,
    one_sided_lines,
)
from nnx_migrate.parity.checks.coverage import coverage_gaps
from nnx_migrate.parity.checks.modes import OneRun, over_modes, pairs, with_programs
from nnx_migrate.parity.evaluation.results import SideResult
from nnx_migrate.parity.report import CHECKS, Check, Verdict
from nnx_migrate.parity.values import ALL_ZERO, same_bits

_LATER = "not part of this run"
_STATELESS = ": where that is right, say so in the case (CASE = dict(stateless=True))"


@dataclass(frozen=True)
class Comparison:
    """All checks in their order, with what the verdict rests on."""

    checks: tuple[Check, ...]
    verdict: Verdict
    not_checked: tuple[str, ...]
    rules_used: tuple[str, ...]


def compare(case: ParityCase, linen: SideResult, nnx: SideResult) -> Comparison:
    """Compare what the two sides of a case yielded. Of ``case`` only the settings are read."""
    found = programs.agreement(*with_programs(linen, nnx))
    left_out: list[str] = []

    def all_runs(check: OneRun) -> Callable[[], Check]:
        def made() -> Check:
            whole, notes = over_modes(check, case, linen, nnx)
            left_out.extend(notes)
            return whole

        return made

    made: dict[str, Callable[[], Check]] = {
        "stacks": lambda: _stacks(linen, nnx),
        "control": lambda: _control(linen),
        "paths": lambda: _of_variables("paths", case, linen, nnx, _paths),
        "shapes": lambda: _of_variables("shapes", case, linen, nnx, _shapes),
        "specs": lambda: compare_shardings.specs(linen, nnx),
        "specs_after_step": lambda: compare_shardings.specs_after_step(linen, nnx),
        "init_values": lambda: _of_variables("init_values", case, linen, nnx, _init_values),
        "forward": all_runs(numbers.forward),
        "loss": all_runs(functools.partial(numbers.compare_arrays, "loss", lambda run: run.loss)),
        "gradients": all_runs(numbers.gradients),
        "losses_over_steps": lambda: _losses(case, linen, nnx),
        "rng": all_runs(numbers.rng),
        "collections": all_runs(numbers.collections),
        "program": lambda: programs.program(linen, nnx, found),
        "collectives": lambda: _counts("collectives", linen.collectives, nnx.collectives),
        "memory": lambda: _counts("memory", _bytes(linen), _bytes(nnx)),
    }
    checks = tuple(
        made[name]() if name in made else Check(name, "not_run", 0, (_LATER,)) for name in CHECKS
    )
    not_checked = [
        f"{check.name}: {check.details[0]}" for check in checks if check.status == "not_run"
    ]
    statuses = {check.name: check.status for check in checks}
    not_checked += [*left_out, *coverage_gaps(case, linen, nnx, statuses["rng"] == "fail")]
    if found.units:
        not_checked.append(
            f"constraints: over mesh axes of size 1, which NNX leaves out: {', '.join(found.units)}"
        )
    if nnx.bridges:
        not_checked.append(f"still Linen, behind ToNNX: {', '.join(nnx.bridges)}")
    if found.parts and ("fail" in statuses.values() or statuses["forward"] != "pass"):
        # Nothing speaks for a program that differs where any number does, or none was computed.
        checks = tuple(_as_failure(check) if check.name == "program" else check for check in checks)
    has_failures = any(check.status == "fail" for check in checks)
    verdict = _verdict(has_failures, found, linen, nnx)
    if verdict == "numerically_equal" and not linen.eager_reason:
        not_checked += [
            f"program: not the same, so the numbers hold for the inputs of this case only: {line}"
            for line in found.parts
        ]
    rules = found.rules if verdict == "equal_by_rules" else ()
    return Comparison(checks, verdict, tuple(not_checked), rules)


def _as_failure(check: Check) -> Check:
    return Check(check.name, "fail", check.leaves, check.details)


def _verdict(
    has_failures: bool, programs_found: programs.Programs, linen: SideResult, nnx: SideResult
) -> Verdict:
    if has_failures:
        return "different"
    if linen.eager_reason or programs_found.parts or not _all_bits(linen, nnx):
        return "numerically_equal"
    return "identical" if programs_found.same else "equal_by_rules"


def _all_bits(linen: SideResult, nnx: SideResult) -> bool:
    runs: Sequence[tuple[Any, Any]] = [(linen, nnx), *pairs(linen, nnx)]
    return all(
        same_bits(ours[path], theirs[path])
        for side, twin in runs
        for one, other in ((side.first, twin.first), (side.second, twin.second))
        for ours, theirs in (
            (one.outputs, other.outputs),
            (one.loss, other.loss),
            (one.gradients, other.gradients),
            (one.input_gradients, other.input_gradients),
            (one.collections, other.collections),
        )
        for path in ours
    )


def _stacks(linen: SideResult, nnx: SideResult) -> Check:
    failures = [*linen.problems, *nnx.problems]
    if (linen.stack, nnx.stack) != ("linen", "nnx"):
        failures.append(f"expected a Linen and an NNX side, found {linen.stack} and {nnx.stack}")
    if "construct" not in nnx.errors and bool(linen.eager_reason) != bool(nnx.eager_reason):
        failures.append("one side was compiled, the other ran operation by operation")
    failures += [
        f"NNX {stage}: {error}" for stage, error in nnx.errors.items() if stage == "construct"
    ]
    notes = [f"Linen: {linen.model}", f"NNX: {nnx.model}"]
    notes += [f"still Linen, behind ToNNX: {name}" for name in nnx.bridges]
    return check_of("stacks", 2, failures, notes)


def _control(linen: SideResult) -> Check:
    failures = [f"Linen differs from itself: {line}" for line in linen.control]
    if not linen.control_leaves and not failures and numbers.returns_nothing(linen):
        return Check("control", "not_run", 0, (numbers.NOTHING,))
    if not linen.control_leaves:
        failures.append("nothing was compared")
    return check_of("control", linen.control_leaves, failures)


def _of_variables(
    name: str,
    case: ParityCase,
    linen: SideResult,
    nnx: SideResult,
    check: Callable[[SideResult, SideResult], Check],
) -> Check:
    """A check of variables, which a model that is known to have none cannot fail."""
    if case.stateless and not (linen.shapes or nnx.shapes or nnx.errors):
        return Check(name, "not_run", 0, ("the model has no variables, as the case says",))
    return check(linen, nnx)


def _paths(linen: SideResult, nnx: SideResult) -> Check:
    failures = one_sided_lines(linen.shapes, nnx.shapes)
    if not linen.shapes and not nnx.shapes:
        failures.append(f"nothing was compared: the model has no variables{_STATELESS}")
    notes = [f"no Linen counterpart by design: {', '.join(nnx.nnx_only)}"] if nnx.nnx_only else []
    if nnx.shared_submodules:
        notes.append(
            f"shared, so nnx.state lists them elsewhere: {', '.join(nnx.shared_submodules)}"
        )
    return check_of("paths", len(linen.shapes.keys() & nnx.shapes.keys()), failures, notes)


def _shapes(linen: SideResult, nnx: SideResult) -> Check:
    common_paths = sorted(linen.shapes.keys() & nnx.shapes.keys())
    failures = [
        f"{path}: Linen {linen.shapes[path]}, NNX {nnx.shapes[path]}"
        for path in common_paths
        if linen.shapes[path] != nnx.shapes[path]
    ]
    if not common_paths:
        failures.append("nothing was compared")
    return check_of("shapes", len(common_paths), failures)


def _losses(case: ParityCase, linen: SideResult, nnx: SideResult) -> Check:
    stage = "losses_over_steps"
    not_run_check = blocked_check(stage, linen, nnx)
    if not_run_check is not None:
        return not_run_check
    failures, notes = differences(linen.losses, nnx.losses, case.tolerance)
    return check_of(stage, common_count(linen.losses, nnx.losses), failures, notes)


def _init_values(linen: SideResult, nnx: SideResult) -> Check:
    if "init_values" in nnx.errors:
        return check_of("init_values", 0, [f"NNX: {nnx.errors['init_values']}"])
    if "init_values" in linen.skip_reasons and "init_values" in nnx.skip_reasons:
        return Check("init_values", "not_run", 0, (linen.skip_reasons["init_values"],))
    failures, _ = differences(linen.init_values, nnx.init_values, None)
    for side, ours, theirs in (("NNX", nnx, linen), ("Linen", linen, nnx)):
        failures += [
            f"under real keys only {side} repeats itself: {line}"
            for line in ours.duplicates
            if line not in theirs.duplicates
        ]
    if nnx.repeated_draws:
        failures.append(f"{nnx.repeated_draws} of {nnx.draws} NNX draws got a key used before")
    if failures == [f"{side}: {ALL_ZERO}" for side in ("Linen", "NNX")]:
        # Only zero initialisers: nothing else differs, and the other checks start from random values.
        reason = "all initial values are zero on both sides; forward and gradients use random ones"
        return Check("init_values", "not_run", 0, (reason,))
    return check_of("init_values", common_count(linen.init_values, nnx.init_values), failures)


def _bytes(side: SideResult) -> dict[str, int]:
    """Bytes of one device: what of the training state lies there, and what the compiler adds."""
    bytes_by_kind: dict[str, int] = {}
    for path, layout in side.layouts.items():
        kind = "parameters" if path.startswith("params/") else "other state"
        bytes_by_kind[kind] = bytes_by_kind.get(kind, 0) + layout.bytes
    return {**bytes_by_kind, **side.memory}


def _counts(name: str, ours: dict[str, int], theirs: dict[str, int]) -> Check:
    """Compare numbers by name; where neither side has any, none were asked for."""
    if not ours and not theirs:
        return Check(name, "not_run", 0, (_LATER,))
    failures = one_sided_lines(ours, theirs)
    shared_names = [key for key in ours if key in theirs]
    failures += [
        f"{key}: Linen {ours[key]:,}, NNX {theirs[key]:,}"
        for key in shared_names
        if ours[key] != theirs[key]
    ]
    notes = [f"{key}: {ours[key]:,}" for key in shared_names]
    return check_of(name, len(shared_names), failures, notes)
