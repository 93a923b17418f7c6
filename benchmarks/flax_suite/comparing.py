"""What passed before against what passes after, test by test."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.flax_suite.running import Outcome, Outcomes

REMAINING = Path(__file__).with_name("remaining.toml")
GONE = Outcome("not run", "it did not run after the rewrite")


@dataclass(frozen=True)
class Compared:
    """The tests of one file that passed under Linen, and what became of them."""

    file: str
    tests: int  # all tests of the file
    passed: tuple[str, ...]  # before
    lost: Mapping[str, str]  # passed before, do not now: why not, in pytest's words

    @property
    def kept(self) -> int:
        """Number of tests that passed before and pass now."""
        return len(self.passed) - len(self.lost)


def compare(file: str, before: Outcomes, after: Outcomes) -> Compared:
    """Judge each test that passed before; one that is skipped or gone does not pass."""
    passed = tuple(name for name, one in before.items() if one.outcome == "passed")
    crash = after.get(file, GONE)  # a file that cannot be imported has this one outcome
    lost = {}
    for name in passed:
        now = after.get(name, crash)
        if now.outcome != "passed":
            lost[name] = now.error or now.outcome
    return Compared(file, len(before), passed, lost)


def explanations(form: str = "lazy", file: Path = REMAINING) -> dict[str, str]:
    """The tests known not to pass in a form, and why, one line each.

    Raises:
      ValueError: an explanation is empty or longer than a line.
    """
    listed: dict[str, str] = tomllib.loads(file.read_text(encoding="utf-8"))[form]
    for name, why in listed.items():
        if not why.strip() or "\n" in why:
            raise ValueError(f"{file}: expected one line for {name!r}, found {why!r}")
    return listed


def table(compared: list[Compared], explained: Mapping[str, str]) -> str:
    """Rows per file, the percentage, and every test that passes no more."""
    lines = ["| file | tests | pass under Linen | pass rewritten | |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.file} | {one.tests} | {len(one.passed)} | {one.kept} | {share(one)} |"
        for one in compared
    ]
    whole = total(compared)
    lines += [f"| **all** | {whole.tests} | {len(whole.passed)} | {whole.kept} | {share(whole)} |"]
    for title, names in (
        ("not passing, for a known reason", [n for n in whole.lost if n in explained]),
        ("not passing, unexplained", [n for n in whole.lost if n not in explained]),
    ):
        if names:
            lines += ["", f"{title} ({len(names)}):"]
            lines += [f"- {name}: {explained.get(name) or whole.lost[name]}" for name in names]
    stale = [n for n in explained if n in whole.passed and n not in whole.lost]
    if stale:
        lines += ["", f"explained, but passing ({len(stale)}): {', '.join(stale)}"]
    return "\n".join(lines) + "\n"


def total(compared: list[Compared]) -> Compared:
    """All files as one."""
    passed = tuple(name for one in compared for name in one.passed)
    lost = {name: error for one in compared for name, error in one.lost.items()}
    return Compared("all", sum(one.tests for one in compared), passed, lost)


def share(one: Compared) -> str:
    """The part of the tests that still pass."""
    return f"{100 * one.kept / len(one.passed):.1f} %" if one.passed else "-"


def as_json(versions: str, compared: list[Compared], explained: Mapping[str, str]) -> Any:
    """The same as plain data."""
    whole = total(compared)
    return {
        "versions": versions,
        "tests": whole.tests,
        "passed_before": len(whole.passed),
        "passed_after": whole.kept,
        "files": {
            one.file: {"tests": one.tests, "before": len(one.passed), "after": one.kept}
            for one in compared
        },
        "lost": [
            {"test": name, "error": error, "why": explained.get(name)}
            for name, error in whole.lost.items()
        ],
    }
