"""Rewrite one package with the command line tool and read its report."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.corpus.packages import CHECKOUT, Package

SETTINGS = Path(__file__).with_name("settings")
OUTCOMES = ("rewritten", "bridged", "refused", "kept")


@dataclass(frozen=True)
class Rewritten:
    """A rewritten package: where it lies, and what the report says about it."""

    package: Package
    before: Path
    after: Path
    map: Path
    seconds: float
    error: str | None = None
    report: dict[str, Any] = field(default_factory=dict)

    def outcomes(self) -> dict[str, dict[str, Any]]:
        """Return the report's classes by ``path:Qualified.Name``."""
        return {
            f"{entry['path']}:{within_file(entry['name'], entry['path'])}": entry
            for entry in self.report.get("classes", [])
        }

    def output_digest(self, paths: frozenset[str] | None = None) -> str:
        """A hash of the map and of the rewritten files, all or those in the folders of ``paths``."""
        folders = None if paths is None else {str(Path(path).parent) for path in paths}
        digest = hashlib.sha256(_content(self.map))
        for entry in sorted(self.report.get("files", []), key=lambda entry: str(entry["path"])):
            if entry["status"] != "rewritten":
                continue
            if folders is None or str(Path(entry["path"]).parent) in folders:
                digest.update(entry["path"].encode())
                digest.update(_content(self.after / entry["path"]))
        return digest.hexdigest()


def rewrite(
    package: Package, before: Path, folder: Path, timeout: float, form: str = "auto"
) -> Rewritten:
    """Rewrite the tree ``before`` into ``folder/after``; an error is a value, not an exception.

    A package with settings of ours (`settings_of`) is rewritten from a copy that has them.
    """
    after, report, migration = folder / "after", folder / "report.json", folder / "map.json"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = settings_of(package)
    if settings is not None:
        before = shutil.copytree(before, folder / "before")
        with (before / "pyproject.toml").open("a", encoding="utf-8") as file:
            file.write(f"\n{settings.read_text(encoding='utf-8')}")
    command = [sys.executable, "-m", "nnx_migrate", "rewrite", str(before)]
    command += ["--output", str(after), "--report", str(report), "--map", str(migration)]
    command += ["--root", str(before), "--form", form, "--no-cache"]
    started = time.monotonic()
    try:
        done = run_tool(command, timeout)
    except subprocess.TimeoutExpired:
        error: str | None = f"not rewritten after {timeout:g} s"
        return Rewritten(package, before, after, migration, time.monotonic() - started, error)
    seconds = time.monotonic() - started
    error = None if done.returncode in (0, 1) else last_line(done.stderr)
    content = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    if error is None and not content:
        error = f"no report: {last_line(done.stderr)}"
    return Rewritten(package, before, after, migration, seconds, error, content)


def settings_of(package: Package) -> Path | None:
    """What we say of a package in its pyproject.toml, as its authors could; None: nothing."""
    file = SETTINGS / f"{package.name}.toml"
    return file if file.exists() else None


def within_file(name: str, path: str) -> str:
    """Return the part of a qualified name after its module's, for a file at ``path``."""
    module = list(Path(path).with_suffix("").parts)
    if module[-1] == "__init__":
        module.pop()
    parts = name.split(".")
    for start in range(len(module)):
        tail = module[start:]
        if parts[: len(tail)] == tail:
            return ".".join(parts[len(tail) :])
    return name


def run_tool(
    command: Sequence[str], timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with the checkout's own tool; its output is kept. Raises TimeoutExpired."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=tool_environment(),
        check=False,
    )


def tool_environment() -> dict[str, str]:
    """Return the environment in which the checkout's own tool runs, without accelerators."""
    return {
        **os.environ,
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAX_PLATFORMS": "cpu",
        "USE_TORCH": "0",
        "HF_HUB_OFFLINE": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def last_line(text: str) -> str:
    """Return the last line that says something, cut to a readable length."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:400] if lines else "no message"


def _content(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""
