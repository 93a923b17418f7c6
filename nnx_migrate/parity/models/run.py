"""A built-in model, from its options to the report, in this process."""

from __future__ import annotations

import dataclasses
import time

from nnx_migrate.parity import run
from nnx_migrate.parity.case import BadCase
from nnx_migrate.parity.comparison_result import ComparisonResult
from nnx_migrate.parity.evaluation.running import platform
from nnx_migrate.parity.models.devices import require_devices, set_up
from nnx_migrate.parity.models.options import ModelOptions
from nnx_migrate.parity.models.pair import Pair, build
from nnx_migrate.parity.models.required_checks import final_report
from nnx_migrate.parity.sides.linen import evaluate_linen
from nnx_migrate.parity.sides.nnx import evaluate_nnx
from nnx_migrate.parity.words import BadWord

REQUIRED = (
    "stacks",
    "control",
    "paths",
    "shapes",
    "specs",
    "specs_after_step",
    "memory",
    "init_values",
    "forward",
    "loss",
    "gradients",
    "program",
)


def run_model(options: ModelOptions) -> ComparisonResult:
    """Compare the two sides of a built-in model on simulated devices.

    Raises BadWord with one line when the options do not fit the model or the machine.
    """
    start = time.monotonic()
    set_up(options)
    require_devices(options)
    pair = build(options)
    try:
        found = _compare(pair)
    except BadCase as error:
        raise BadWord(str(error)) from error
    report = final_report(found.report, options, REQUIRED, start)
    return dataclasses.replace(found, report=report)


def _compare(pair: Pair) -> ComparisonResult:
    linen = evaluate_linen(pair.linen)
    pair = pair.in_modes(run.modes_of(linen))
    nnx = evaluate_nnx(pair.nnx)
    found = ComparisonResult(run.judge(pair.linen, linen, nnx), linen, nnx, *platform())
    if not run.wants_submodules(found.report):
        return found
    ours = evaluate_linen(pair.linen, submodules=True, numbers=False)
    theirs = evaluate_nnx(pair.nnx, submodules=True, numbers=False)
    report = run.with_location(found.report, pair.linen, ours, theirs)
    return dataclasses.replace(found, report=report)
