"""A built-in model, from its options to the report, in this process."""

from __future__ import annotations

import dataclasses
import os
import time

import jax

from nnx_migrate.parity import run
from nnx_migrate.parity.case import BadCase
from nnx_migrate.parity.linen_side import evaluate_linen
from nnx_migrate.parity.models.options import ModelOptions
from nnx_migrate.parity.models.pair import Pair, build
from nnx_migrate.parity.nnx_side import evaluate_nnx
from nnx_migrate.parity.process import device_flags
from nnx_migrate.parity.report import Check, ParityReport
from nnx_migrate.parity.words import BadWord

# What a built-in model has to show: that one of these did not run is a failure.
REQUIRED = (
    "stacks",
    "control",
    "paths",
    "shapes",
    "specs",
    "specs_after_step",
    "init_values",
    "forward",
    "loss",
    "gradients",
    "program",
)


def run_model(options: ModelOptions) -> ParityReport:
    """Compare the two sides of a built-in model on simulated devices.

    Raises BadWord with one line when the options do not fit the model or the machine.
    """
    start = time.monotonic()
    _require_devices(options.devices)
    jax.config.update(
        "jax_remove_size_one_mesh_axis_from_type",
        getattr(options.config, "remove_size_one_mesh_axis_from_type", False),
    )
    pair = build(options)
    try:
        report = _compare(pair)
    except BadCase as error:
        raise BadWord(str(error)) from error
    return dataclasses.replace(
        _with_required(report),
        model=f"{options.model.name} (size={options.size})",
        seconds=round(time.monotonic() - start, 3),
    )


def _compare(pair: Pair) -> ParityReport:
    report = run.judge(pair.linen, evaluate_linen(pair.linen), evaluate_nnx(pair.nnx))
    if not run.wants_submodules(report):
        return report
    ours = evaluate_linen(pair.linen, submodules=True, numbers=False)
    theirs = evaluate_nnx(pair.nnx, submodules=True, numbers=False)
    return run.located(report, pair.linen, ours, theirs)


def _with_required(report: ParityReport) -> ParityReport:
    """The report in which a required check that did not run has failed."""
    checks = tuple(
        Check(one.name, "fail", one.leaves, ("required, and not run", *one.details))
        if one.name in REQUIRED and one.status == "not_run"
        else one
        for one in report.checks
    )
    failed = any(check.status == "fail" for check in checks)
    verdict = "different" if failed else report.verdict
    return dataclasses.replace(report, checks=checks, verdict=verdict)


def _require_devices(needed: int) -> None:
    """Simulate the devices, unless JAX_PLATFORMS names others; jax reads this at first use."""
    os.environ["XLA_FLAGS"] = device_flags(os.environ.get("XLA_FLAGS", ""), needed)
    if "JAX_PLATFORMS" not in os.environ:
        jax.config.update("jax_platforms", "cpu")
    found = len(jax.devices())
    if needed > found:
        raise BadWord(
            f"{needed} devices are needed, {found} are there: make the mesh smaller, or start with "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={needed}"
        )
