"""What a run was made by and on. Loads no jax."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from nnx_migrate import __version__
from nnx_migrate.parity.certificate.data import Provenance

_PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "libcst")
# Versions that decide about no number and no program of a run.
_WITHOUT_EFFECT = ("libcst",)
# In names of variables that say where jax keeps and tells things; the platform is told as the device.
_ELSEWHERE = ("CACHE", "LOG", "TRACEBACK", "DUMP", "PLATFORM")


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment variables that decide what jax computes."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if name in ("XLA_FLAGS", "NPROC")
        or (name.startswith("JAX_") and not any(word in name for word in _ELSEWHERE))
    }


def provenance(settings: Mapping[str, str], device: str, devices: int) -> Provenance:
    """Where this process is, with what ran: ``device`` is its kind, "" where nothing ran."""
    versions = {"nnx-migrate": __version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in _PACKAGES}
    machine = {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cpu": _cpu(),
        "cores": str(_cores()),
        "device": device,
        "devices": str(devices),
    }
    return Provenance(versions, machine, settings)


def differences(before: Provenance, after: Provenance) -> tuple[str, ...]:
    """Why two runs need not give the same bits; none where they have to."""
    lines = []
    groups = (before.versions, after.versions), (before.machine, after.machine)
    for old, new in (*groups, (before.settings, after.settings)):
        for name in dict.fromkeys((*old, *new)):
            was, now = old.get(name, "none"), new.get(name, "none")
            if was != now and name not in _WITHOUT_EFFECT:
                lines.append(f"{name} was {was or 'none'}, is {now or 'none'}")
    return tuple(lines)


def _cpu() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def _cores() -> int:
    """Cores that this process may use: how XLA divides sums depends on them."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
