"""Run ``parity`` on a copy of the package with one fault, and say which check saw it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.mutants.mutant import TREES, Mutant
from benchmarks.sources import ROOT

CHILD = Path(__file__).with_name("child.py")
CACHE = ROOT / ".cache" / "mutants"
# Compiled programs are kept from process to process: most of a mutant's are those of the model.
COMPILED = {
    "JAX_COMPILATION_CACHE_DIR": str(CACHE / "compiled"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# Simulated devices wait for each other; on a busy machine longer than XLA's 40 s.
PATIENT = "--xla_cpu_collective_call_terminate_timeout_seconds=600"
TIMEOUT = 1800.0


KEPT = 1000  # characters of a message


@dataclass(frozen=True)
class Row:
    """What became of one mutant in one mode; ``mutant`` is "" for the pair without a fault.

    ``killed_by`` are the checks that failed, ``named`` says whether the message has the place, and
    ``definition`` and ``tree`` are hashes of the mutant and of the sources it was applied to.
    """

    mutant: str
    mode: str
    words: str
    verdict: str
    killed_by: tuple[str, ...]
    place: str
    named: bool
    message: str
    seconds: float
    definition: str
    tree: str

    @property
    def is_killed(self) -> bool:
        """Whether the command said that the sides differ, by a check that failed."""
        return self.verdict == "different" and bool(self.killed_by)

    def knows(self, place: str) -> bool:
        """Whether the row can tell if the message has a place: of a long one it has the beginning."""
        whole = len(self.message) < KEPT
        return place == self.place or whole or names(self.message, place)

    def of_place(self, place: str) -> Row:
        """The row for a mutant that now expects another place in the message, which it `knows`."""
        return (
            self
            if place == self.place
            else replace(self, place=place, named=names(self.message, place))
        )

    def as_json(self) -> dict[str, Any]:
        """The row as plain data."""
        return {**asdict(self), "killed_by": list(self.killed_by)}


def names(message: str, place: str) -> bool:
    """Whether a message has a place, ``a/b`` or any of ``a/b | c.py``."""
    return any(one in message for one in place.split(" | "))


def row_of(data: dict[str, Any]) -> Row:
    """The row that ``as_json`` wrote."""
    return Row(**{**data, "killed_by": tuple(data["killed_by"])})


def run(mutant: Mutant | None, mode: str, words: tuple[str, ...], tree: str) -> Row:
    """Run one command on a copy with the fault, or with none."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder)
        for name in TREES:
            shutil.copytree(ROOT / name, copy / name)
        if mutant is not None:
            path = copy / mutant.path
            path.write_text(mutant.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        # A fault of the shim may reach the Linen side, by the harness.
        is_side = mutant is None or mutant.path.startswith("fixtures/")
        store = str(CACHE / "linen" / tree) if is_side else ""
        report = copy / "report.json"
        done = _execute([store, str(report), *words], copy)
        found = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else {}
    failed = [one for one in found.get("checks", ()) if one["status"] == "fail"]
    message = _message(done, found)
    return Row(
        mutant="" if mutant is None else mutant.name,
        mode=mode,
        words=" ".join(words),
        verdict=found.get("verdict", f"exit code {done.returncode}"),
        killed_by=tuple(one["name"] for one in failed),
        place="" if mutant is None else mutant.place,
        named=mutant is not None and names(message, mutant.place),
        message=message[:KEPT],
        seconds=round(time.monotonic() - start, 1),
        definition="" if mutant is None else mutant.digest(),
        tree=tree,
    )


def _execute(words: list[str], copy: Path) -> subprocess.CompletedProcess[str]:
    flags = f"{os.environ.get('XLA_FLAGS', '')} {PATIENT}".strip()
    environment = {
        **os.environ,
        **COMPILED,
        "PYTHONPATH": str(copy),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": flags,
    }
    command = [sys.executable, str(CHILD), *words]
    try:
        return subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no end after {TIMEOUT:.0f} s")


def _message(done: subprocess.CompletedProcess[str], found: dict[str, Any]) -> str:
    """What a person reads of what failed; the last of stderr where there is no report."""
    lines = done.stdout.splitlines()
    told = [one.strip() for one in lines if one.startswith(("  fail ", "  first difference"))]
    if found or told:
        return " | ".join(told)
    return " ".join((done.stdout + done.stderr).split())[-600:]
