"""A pytest plugin: takes ``flax.linen`` away from the process, and writes what became of each test.

``FLAX_SUITE_RESULTS`` names the file to write; with ``FLAX_SUITE_BLOCK`` set flax.linen is blocked. It is
blocked after flax.nnx and flax.training were loaded, because these import it themselves.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

BLOCKED = "flax.linen"


class _Refuse(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == BLOCKED or name.startswith(f"{BLOCKED}."):
            raise ImportError(f"{name} is not there: this process runs without it")
        return None


def block() -> None:
    """Make every later import of flax.linen, and ``flax.linen`` itself, fail."""
    import flax
    import flax.nnx
    import flax.training.train_state

    for name in [*sys.modules]:
        if name == BLOCKED or name.startswith(f"{BLOCKED}."):
            del sys.modules[name]
    if hasattr(flax, "linen"):
        del flax.linen
    sys.meta_path.insert(0, _Refuse())


if os.environ.get("FLAX_SUITE_BLOCK"):
    block()

_found: dict[str, dict[str, str]] = {}


def pytest_runtest_logreport(report: Any) -> None:
    """A test that failed in any of its phases has failed; one that was skipped did not pass."""
    entry = _found.setdefault(report.nodeid, {"outcome": "not run"})
    if entry["outcome"] == "failed":
        return
    if report.failed:
        entry.update(outcome="failed", error=_line(report))
    elif report.skipped:
        entry["outcome"] = "skipped"
    elif report.when == "call":
        entry["outcome"] = "passed"


def pytest_collectreport(report: Any) -> None:
    """A file that could not be imported."""
    if report.failed:
        _found[report.nodeid] = {"outcome": "failed", "error": _line(report)}


def pytest_sessionfinish() -> None:
    """Write all outcomes."""
    Path(os.environ["FLAX_SUITE_RESULTS"]).write_text(json.dumps(_found), encoding="utf-8")


def _line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message).strip().split("\n")[0]
    text = str(report.longreprtext)
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return lines[-1] if lines else text.strip().split("\n")[-1]
