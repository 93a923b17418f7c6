"""Where the rewriter gets each needed size from, without and with what was recorded."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.corpus.rewriting import last_line, run_tool, within_file
from benchmarks.sizes.traced import Needed
from nnx_migrate.sizes.study.recorded import DISAGREE

# How the report names where a size comes from, and what that means with and without evidence.
_STATIC = ("static", "both")


class MeasureError(Exception):
    """A package could not be rewritten; the message is one line."""


@dataclass(frozen=True)
class Row:
    """One case: how many sizes it needs, and how many of them come from where."""

    case: str
    needed: int
    static: int  # an expression over fields and inputs, found in the code and equal to the traces
    recorded: int  # an expression that only the recording gave
    argument: int  # a constructor argument that the code does not tell
    open: int  # the class stays Linen, or the place is not in the report
    wrong: int  # the code's answer is not what was traced
    places: Mapping[str, list[str]] = field(default_factory=dict)


def hashes_of(tree: Path) -> dict[str, str]:
    """Path in the package by the hash of the file's bytes."""
    return {
        hashlib.sha256(file.read_bytes()).hexdigest(): file.relative_to(tree).as_posix()
        for file in sorted(tree.rglob("*.py"))
        if file.is_file()
    }


def report_with_evidence(
    tree: Path, sizes: Iterable[Needed], evidence: Path, timeout: float
) -> dict[str, Any]:
    """The report of ``rewrite --evidence`` on the folder that has the sizes' files.

    Nothing of the tree is changed; paths are relative to the tree. Raises MeasureError.
    """
    folder = os.path.commonpath([str(Path(one.path).parent) for one in sizes] or ["."])
    report = evidence.with_suffix(".json")
    report.unlink(missing_ok=True)
    target = str(tree / folder)
    command = [sys.executable, "-m", "nnx_migrate", "rewrite", target, "--root", str(tree)]
    command += ["--check", "--report", str(report), "--evidence", str(evidence)]
    try:
        done = run_tool(command, timeout)
    except subprocess.TimeoutExpired:
        raise MeasureError(f"not rewritten after {timeout:g} s") from None
    if not report.exists():
        raise MeasureError(last_line(done.stderr))
    content: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    for cls in content["classes"]:
        cls["path"] = (Path(folder) / cls["path"]).as_posix()
    return content


def row(case: str, sizes: Iterable[Needed], report: Mapping[str, Any]) -> Row:
    """Count one case's sizes by the source that the report gives them."""
    sources = _sources(report)
    contradicted = _contradicted(report)
    places: dict[str, list[str]] = {}
    for one in sizes:
        source = sources.get((one.path, one.line, one.column, one.argument), "open")
        kind = "static" if source in _STATIC else source
        if source == "open" and (one.path, one.cls) in contradicted:
            kind = "wrong"
        places.setdefault(kind, []).append(one.text)
    count = Counter({kind: len(texts) for kind, texts in places.items()})
    return Row(
        case,
        sum(count.values()),
        count["static"],
        count["recorded"],
        count["argument"],
        count["open"],
        count["wrong"],
        {kind: texts for kind, texts in places.items() if kind != "static"},
    )


def _sources(report: Mapping[str, Any]) -> dict[tuple[str, int, int, str], str]:
    """``source`` by path, line, column and argument, of the classes that are rewritten."""
    return {
        (cls["path"], size["line"], size["column"], size["argument"]): size["source"]
        for cls in report["classes"]
        if cls["outcome"] == "rewritten"
        for size in cls.get("sizes", ())
    }


def _contradicted(report: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Classes refused because the code's answer is not the recorded one."""
    return {
        (cls["path"], within_file(cls["name"], cls["path"]))
        for cls in report["classes"]
        if cls["outcome"] != "rewritten" and DISAGREE in (cls.get("reason") or "")
    }
