"""The runner against a stand-in for the tool, which does what the package's ``BEHAVIOUR`` says."""

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpus import rewriting
from benchmarks.corpus.comparing import Row, compare
from benchmarks.corpus.packages import Case, Package
from benchmarks.corpus.rewriting import Rewritten, rewrite

TOOL = """
import json, pathlib, shutil, sys, time
words = sys.argv[2:]
if sys.argv[1] == "rewrite":
    source = pathlib.Path(words[0])
    options = dict(zip(words[1::2], words[2::2]))
    if (source / "broken").exists():
        sys.exit("internal error: no luck")
    shutil.copytree(source, options["--output"])
    outcome = (source / "outcome").read_text()
    name = {"name": "models.Block", "path": "models.py", "line": 1}
    report = {
        "files": [{"path": "models.py", "status": "rewritten"}],
        "classes": [{**name, "outcome": outcome, "reason": "too hard"}],
        "references": {"total": 2, "rewritten": 2},
        "call_sites": {"total": 0},
        "findings": [],
    }
    pathlib.Path(options["--report"]).write_text(json.dumps(report))
    pathlib.Path(options["--map"]).write_text("{}")
    sys.exit(0 if outcome == "rewritten" else 1)
options = dict(word.split("=", 1) for word in words)
behaviour = (pathlib.Path(options["before"]) / "behaviour").read_text()
if behaviour == "crash":
    sys.exit("parity: linen() raised ValueError: no")
if behaviour == "hang":
    time.sleep(600)
report = {
    "verdict": behaviour,
    "ok": behaviour != "different",
    "checks": [{"name": "forward", "status": "fail", "details": ["output 0 is off by 1.0"]}],
    "first_difference": {"path": "encoder/Dense_0"},
}
pathlib.Path(options["report"]).write_text(json.dumps(report))
"""
FROZEN: dict[str, Any] = {"class": "models.py:Block", "classes": ["models.py:Block"]}


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tool" / "nnx_migrate"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(TOOL)
    monkeypatch.setattr(rewriting, "CHECKOUT", tmp_path / "tool")


def rewritten(
    tmp_path: Path, behaviour: str = "identical", outcome: str = "rewritten"
) -> Rewritten:
    source = tmp_path / "source"
    source.mkdir(exist_ok=True)
    (source / "models.py").write_text(f"# {behaviour}\n")
    (source / "behaviour").write_text(behaviour)
    (source / "outcome").write_text(outcome)
    if outcome == "broken":
        (source / "broken").touch()
    return rewrite(Package("p", "rest", "p", "1"), source, tmp_path / "out", timeout=60)


def compared(tmp_path: Path, tree: Rewritten, timeout: float = 60) -> Row:
    file = tmp_path / "case.py"
    file.write_text("CASE = {}\n")
    case = Case("block", "rest", "p", file)
    return compare(case, FROZEN, tree, Path(sys.executable), tmp_path / "results", timeout)


@pytest.mark.usefixtures("tool")
def test_a_row_has_the_verdict_and_the_outcomes_of_its_classes(tmp_path: Path) -> None:
    row = compared(tmp_path, rewritten(tmp_path))
    assert (row.verdict, row.ok, row.detail, row.reused) == ("identical", True, "", False)
    assert row.classes == {"rewritten": 1, "bridged": 0, "refused": 0, "kept": 0}
    assert row.checks == {"forward": "fail"}


@pytest.mark.usefixtures("tool")
def test_a_result_is_reused_until_the_rewritten_files_change(tmp_path: Path) -> None:
    compared(tmp_path, rewritten(tmp_path))
    assert compared(tmp_path, rewritten(tmp_path)).reused
    changed = compared(tmp_path, rewritten(tmp_path, "numerically_equal"))
    assert (changed.verdict, changed.reused) == ("numerically_equal", False)


@pytest.mark.usefixtures("tool")
def test_a_difference_says_which_check_and_where(tmp_path: Path) -> None:
    row = compared(tmp_path, rewritten(tmp_path, "different"))
    assert not row.ok
    assert row.detail == ("forward: output 0 is off by 1.0; first difference at encoder/Dense_0")


@pytest.mark.usefixtures("tool")
def test_a_crash_is_a_row_with_the_last_line(tmp_path: Path) -> None:
    row = compared(tmp_path, rewritten(tmp_path, "crash"))
    assert (row.verdict, row.ok) == ("error", False)
    assert row.detail == "parity: linen() raised ValueError: no"


@pytest.mark.usefixtures("tool")
def test_a_case_that_hangs_is_stopped(tmp_path: Path) -> None:
    started = time.monotonic()
    row = compared(tmp_path, rewritten(tmp_path, "hang"), timeout=2)
    assert (row.verdict, row.detail) == ("error", "not finished after 2 s")
    assert time.monotonic() - started < 30


@pytest.mark.usefixtures("tool")
@pytest.mark.parametrize("outcome", ["refused", "bridged", "kept"])
def test_a_class_that_stays_linen_is_not_compared(tmp_path: Path, outcome: str) -> None:
    row = compared(tmp_path, rewritten(tmp_path, outcome=outcome))
    assert (row.verdict, row.detail, row.seconds) == (outcome, "too hard", 0.0)
    assert row.classes[outcome] == 1


@pytest.mark.usefixtures("tool")
def test_a_package_that_cannot_be_rewritten_fails_each_of_its_cases(tmp_path: Path) -> None:
    row = compared(tmp_path, rewritten(tmp_path, outcome="broken"))
    assert (row.verdict, row.detail) == ("error", "rewrite: no report: internal error: no luck")
