"""Run a package's cases before and after the rewrite, and say where the two sides part."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.corpus.packages import CHECKOUT, Case
from benchmarks.corpus.rewriting import last_line, tool_environment
from benchmarks.packages.side import AFTER, BEFORE

Result = dict[str, Any]

# Compiling is nearly all the time; bits are compared between programs compiled alike, fast or not.
_CHEAP = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"


@dataclass(frozen=True)
class Compared:
    """One case: which of its comparisons hold, and the first thing that does not."""

    case: str
    package: str
    same: bool
    detail: str = ""
    counts: dict[str, int] = field(default_factory=dict)  # leaves compared, by comparison


def compare(case: Case, before: Result, after: Result) -> Compared:
    """Compare what the two sides printed for one case; bit for bit, path for path."""
    counts: dict[str, int] = {}
    detail = _problem(before, after, counts)
    return Compared(case.name, case.package, not detail, detail, counts)


def _problem(before: Result, after: Result, counts: dict[str, int]) -> str:
    for side, result in ((BEFORE, before), (AFTER, after)):
        if "error" in result:
            return f"{side}: {result['error']}"
    if before["mode"] != after["mode"]:
        return f"compiled only {BEFORE if before['mode'] == 'jit' else AFTER} the rewrite"
    if after["linen_modules"]:
        return f"Linen modules are left: {', '.join(after['linen_modules'][:3])}"
    pairs = [
        ("variables", before["variables"], after["variables"]),
        ("outputs", before["outputs"], after["outputs"]),
        ("built", before["variables"], after["built"]),
    ]
    if "built_call" in after:
        pairs.append(("built_call", after["built_apply"], after["built_call"]))
    for name, expected, found in pairs:
        counts[name] = len(expected)
        told = _difference(expected, found)
        if told:
            return f"{name}: {told}"
    return "" if counts["outputs"] else "nothing was compared"


def _difference(expected: dict[str, str], found: dict[str, str]) -> str:
    missing = sorted(expected.keys() - found.keys())
    added = sorted(found.keys() - expected.keys())
    if missing or added:
        return f"paths missing {missing[:2]} ({len(missing)}), added {added[:2]} ({len(added)})"
    other = sorted(path for path in expected if expected[path] != found[path])
    if not other:
        return ""
    first = other[0]
    return f"{len(other)} of {len(expected)} differ, {first}: {expected[first]} / {found[first]}"


def run_side(
    python: Path, tree: Path, side: str, cases: Sequence[Case], cache: Path, timeout: float
) -> dict[str, Result]:
    """What each case gives on one side, by name.

    On the side before, a case is read from the last run if neither it nor how it is run changed. A case
    with which the process ends early or hangs is named so; those after it run in a new process.
    """
    found: dict[str, Result] = {}
    for case in cases if side == BEFORE else ():
        kept = _kept(cache, tree, case)
        if kept.exists():
            found[case.name] = json.loads(kept.read_text(encoding="utf-8"))
    while left := [case for case in cases if case.name not in found]:
        by_file = {str(case.file): case for case in left}
        for line in _process(python, tree, side, list(by_file), cache, timeout * len(left)):
            case = by_file[line["case"]]
            found[case.name] = line
            if side == BEFORE and "error" not in line:
                _kept(cache, tree, case).write_text(json.dumps(line), encoding="utf-8")
    return found


def _process(
    python: Path, tree: Path, side: str, files: Sequence[str], cache: Path, timeout: float
) -> Iterator[Result]:
    """The lines that a process prints, and one for the case with which it ended early."""
    cache.mkdir(parents=True, exist_ok=True)
    command = [str(python), "-W", "ignore", "-m", "benchmarks.packages.side"]
    command += ["--source", str(tree), "--side", side, *files]
    environment = {**tool_environment(), "XLA_FLAGS": _CHEAP}
    left = list(files)
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
        timer = threading.Timer(timeout, process.kill)
        timer.start()
        for text in process.stdout or ():
            if text.startswith('{"case"'):
                line = json.loads(text)
                left.remove(line["case"])
                yield line
        code = process.wait()
        timer.cancel()
        errors.seek(0)
        if left:
            told = f"the process ended with {code}: {last_line(errors.read())}"
            yield {"case": left[0], "error": told, "linen_modules": []}


def _kept(cache: Path, tree: Path, case: Case) -> Path:
    digest = hashlib.sha256(f"{tree}\0{_CHEAP}\0{case.name}\0{case.digest()}".encode())
    digest.update((CHECKOUT / "benchmarks" / "packages" / "side.py").read_bytes())
    return cache / f"{digest.hexdigest()[:24]}.json"
