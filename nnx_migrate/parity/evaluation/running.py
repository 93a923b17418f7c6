"""How a stage of a side runs: traced and compiled, or operation by operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from nnx_migrate.parity.case import ParityCase

# What JAX raises where Python needs the value of an array that is being traced.
NEEDS_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
# Why a side has no program and takes no steps.
OPERATIONS = "run operation by operation, without a program"


def platform() -> tuple[str, int]:
    """What this process runs on, ``cpu`` or the kind of device, and how many devices there are."""
    return jax.devices()[0].device_kind, jax.device_count()


def as_run(case: ParityCase, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as the case runs it: under ``jax.jit``, or as it is."""
    return jax.jit(function) if case.compiled else function


def describe_error(error: BaseException) -> str:
    """Return an exception as one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:500]}"


def trace_with_retry(stage: Callable[[], Any]) -> Any:
    """Run a stage that traces; once more on empty caches when an old trace leaked into it.

    Draws close over the constant key, which Flax and JAX cannot see in their cache keys.
    """
    try:
        return stage()
    except jax.errors.UnexpectedTracerError:
        jax.clear_caches()
        return stage()
