"""Run the suite's files with one Python, before and after, and keep what came out."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus.packages import CHECKOUT

VERSIONS = """
import sys
from importlib.metadata import version
python = ".".join(map(str, sys.version_info[:2]))
print(f"py{python}-jax{version('jax')}-flax{version('flax')}")
"""


class SuiteError(Exception):
    """The suite could not be run; the message is one line."""


@dataclass(frozen=True)
class Outcome:
    """What became of one test."""

    outcome: str  # passed, failed, skipped, not run
    error: str = ""


Outcomes = dict[str, Outcome]


@dataclass(frozen=True)
class Suite:
    """The suite under one Python: its files before and after, and the results so far."""

    python: Path
    folder: Path  # for this set of versions
    form: str = "lazy"

    @property
    def after(self) -> str:
        """The side that is rewritten: "after" in the lazy form, "auto" one test by one."""
        return "after" if self.form == "lazy" else self.form

    @property
    def files(self) -> list[str]:
        """Names of the test files."""
        return sorted(file.name for file in (self.folder / "before").glob("*_test.py"))


def prepare(python: Path, source: Path, cache: Path, form: str = "lazy") -> Suite:
    """Lay the suite out before and after the rewrite.

    Args:
      python: has jax, flax, pytest and what the suite imports.
      source: flax's source distribution.
      cache: where to work.
      form: "lazy", of the files as they are, or "auto", of every test alone.

    Raises:
      SuiteError: that Python does not run, or the rewriter ended with an error.
    """
    done = _run([python, "-c", VERSIONS])
    if done.returncode != 0:
        raise SuiteError(f"{python} has no jax and flax: {_last(done.stderr)}")
    suite = Suite(python, cache / "flax-suite" / done.stdout.strip(), form)
    before = suite.folder / "before"
    _lay_out(source, before)
    _rewrite(suite)
    return suite


def _lay_out(source: Path, before: Path) -> None:
    """The test files, and the part of flax's settings that pytest reads."""
    shutil.rmtree(before, ignore_errors=True)
    shutil.copytree(source / "tests" / "linen", before)
    settings = (source / "pyproject.toml").read_text(encoding="utf-8")
    section = re.search(
        r"^\[tool\.pytest\.ini_options\]\n.*?(?=^\[|\Z)", settings, re.MULTILINE | re.DOTALL
    )
    if section is None:
        raise SuiteError(f"{source / 'pyproject.toml'} has no settings of pytest")
    (before / "pyproject.toml").write_text(section[0], encoding="utf-8")


def _rewrite(suite: Suite) -> None:
    before, after = (suite.folder / side for side in ("before", suite.after))
    shutil.rmtree(after, ignore_errors=True)
    command: list[str | Path] = [suite.python, "-m"]
    if suite.form == "lazy":
        command += ["nnx_migrate", "rewrite", before, "--output", after, "--form", "lazy"]
        command += ["--report", suite.folder / "report.json"]
    else:
        command += ["benchmarks.flax_suite.splitting", before, after]
    done = _run(command)
    if done.returncode not in (0, 1) or not after.exists():
        raise SuiteError(f"the rewriter ended with {done.returncode}: {_last(done.stderr)}")


def outcomes(suite: Suite, side: str, name: str, timeout: float, fresh: bool) -> Outcomes:
    """What became of the tests of one file, on one side ("before", "after" or "auto").

    Read from the last run if neither the file nor, after the rewrite, this package changed since.
    """
    kept = suite.folder / "results" / side / f"{name}.json"
    digest = _digest(*_files(suite, side, name), *(() if side == "before" else _sources()))
    if not fresh and kept.exists():
        content = json.loads(kept.read_text(encoding="utf-8"))
        if content["digest"] == digest:
            return _outcomes(content["tests"])
    tests = _pytest(suite, side, name, timeout)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"digest": digest, "tests": tests}, indent=1), encoding="utf-8")
    return _outcomes(tests)


def _files(suite: Suite, side: str, name: str) -> list[Path]:
    """A file of the suite on one side; in auto one for every test, in folders of their own."""
    return sorted((suite.folder / side).glob(f"*/{name}" if side == "auto" else name))


def _pytest(suite: Suite, side: str, name: str, timeout: float) -> dict[str, dict[str, str]]:
    results = suite.folder / "results" / f"{side}-{name}.now.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "FLAX_SUITE_RESULTS": str(results)}
    environment |= {"JAX_PLATFORMS": "cpu"} | (
        {} if side == "before" else {"FLAX_SUITE_BLOCK": "1"}
    )
    command: list[str | Path] = [
        suite.python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "benchmarks.flax_suite.plugin",
    ]
    command += ["-p", "no:cacheprovider", "-p", "no:randomly", "--import-mode=importlib"]
    command += _files(suite, side, name)
    try:
        done = _run(command, cwd=suite.folder / side, env=environment, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {name: {"outcome": "failed", "error": f"not finished after {timeout:g} s"}}
    log = suite.folder / "results" / side / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    if not results.exists():
        return {name: {"outcome": "failed", "error": _last(done.stderr or done.stdout)}}
    tests: dict[str, dict[str, str]] = json.loads(results.read_text(encoding="utf-8"))
    results.unlink()
    return {test.rpartition("/")[2]: found for test, found in tests.items()}


def _outcomes(tests: dict[str, dict[str, str]]) -> Outcomes:
    return {name: Outcome(**entry) for name, entry in tests.items()}


def _sources() -> list[Path]:
    """What rewritten tests run on."""
    return sorted((CHECKOUT / "nnx_migrate").rglob("*.py"))


def _digest(*files: Path) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()


def _run(
    command: Sequence[str | Path],
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 1800,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd or CHECKOUT,
        env=env,
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]
