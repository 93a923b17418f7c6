"""The result of a parity run, as plain data and as JSON (``"schema": 1``)."""

from __future__ import annotations

import dataclasses
import json
import platform
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Literal

Status = Literal["pass", "fail", "not_run"]
Verdict = Literal["identical", "equal_by_rules", "numerically_equal", "different"]
SCHEMA = 1

CHECKS = (
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
    "losses_over_steps",
    "rng",
    "collections",
    "program",
    "collectives",
    "memory",
    "checkpoint",
)


class ParityFailure(AssertionError):
    """Raised by ``raise_if_different``; the message lists the failed checks."""


@dataclass(frozen=True)
class Check:
    """One check: how many leaves it compared, and what it found."""

    name: str
    status: Status
    leaves: int = 0
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParityReport:
    """What a parity run found out, what it did not check, and its verdict."""

    verdict: Verdict
    checks: tuple[Check, ...]
    not_checked: tuple[str, ...] = ()
    rules_used: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    first_difference: Mapping[str, Any] | None = None
    model: str = ""
    mesh: str | None = None
    processes: int = 1
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_rss_bytes: int = 0

    @property
    def ok(self) -> bool:
        """Whether the models may be called the same: no check failed."""
        has_failures = any(check.status == "fail" for check in self.checks)
        return self.verdict != "different" and not has_failures

    def check(self, name: str) -> Check:
        """Return a check by name. Raises KeyError for a name that is none."""
        for entry in self.checks:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        data = dataclasses.asdict(self)
        return {
            "schema": SCHEMA,
            "verdict": data.pop("verdict"),
            "ok": self.ok,
            "model": data.pop("model"),
            "mesh": data.pop("mesh"),
            "processes": data.pop("processes"),
            "versions": data.pop("versions"),
            **data,
        }

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return json.dumps(self.as_dict(), indent=2) + "\n"

    def raise_if_different(self) -> None:
        """Raise ParityFailure unless the report is ok."""
        if not self.ok:
            raise ParityFailure(self.summary())

    def summary(self) -> str:
        """Return the verdict, the failed checks and the first difference in a few lines."""
        lines = [f"{self.model or 'parity'}: {self.verdict}"]
        for entry in self.checks:
            if entry.status == "fail":
                lines.append(f"  {entry.name}: {'; '.join(entry.details[:3])}")
        if self.first_difference is not None:
            found = self.first_difference
            lines.append(
                f"  first difference in {found['path'] or 'the model itself'}: "
                f"Linen {found['linen']}; NNX {found['nnx']}"
            )
        return "\n".join(lines)


def versions() -> dict[str, str]:
    """Return the versions a result depends on."""
    found = {"python": platform.python_version()}
    for name in ("jax", "jaxlib", "flax", "numpy"):
        found[name] = metadata.version(name)
    return found


def peak_rss_bytes() -> int:
    """Return the most memory this process has held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
