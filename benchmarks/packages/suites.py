"""``python -m benchmarks.packages.suites``: packages' own tests before and after ``rewrite --form lazy``.

The package is rewritten together with its tests, which run as they stand. A test that passed before must
pass after; a skip counts for nothing. Which files: ``suites.toml``, all that reach a Linen module.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.corpus import fetch
from benchmarks.corpus.packages import CHECKOUT, Package, packages, requirements
from benchmarks.corpus.rewriting import last_line, rewrite, tool_environment
from benchmarks.flax_suite.comparing import compare
from benchmarks.flax_suite.running import Outcome, Outcomes

FILE = Path(__file__).with_name("suites.toml")
# What the packages' tests import beside the packages: brax's and aqt's read ml_collections.
TEST_TOOLS = "pytest==9.2.0", "iniconfig==2.3.1", "pluggy==1.7.0", "ml-collections==1.1.0"


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0: every test that passed before passes after; 1: not so; 2: not run."""
    suites = tomllib.loads(FILE.read_text(encoding="utf-8"))
    options = _parser(list(suites)).parse_args(arguments)
    cache = options.cache.resolve()
    lost: dict[str, str] = {}
    sys.stdout.write("| package | tests | passed before | of these after |\n|---|---|---|---|\n")
    try:
        fetch.environment(cache, requirements("rest"), _log)
        python = fetch.environment(cache, TEST_TOOLS, _log)
        for package in packages("rest"):
            if package.name in (options.only or suites):
                row, missing = _suite(package, suites[package.name], python, cache, options)
                lost |= {f"{package.name}: {name}": why for name, why in missing.items()}
                sys.stdout.write(f"{row}\n")
                sys.stdout.flush()
    except fetch.FetchError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for name, why in lost.items():
        sys.stdout.write(f"{name}: {why}\n")
    return 1 if lost else 0


def _parser(known: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packages.suites")
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".cache" / "corpus")
    parser.add_argument("--only", metavar="PACKAGE", action="append", choices=known)
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one file")
    parser.add_argument("--form", choices=("lazy", "auto"), default="lazy")
    return parser


def _suite(
    package: Package,
    settings: Mapping[str, Any],
    python: Path,
    cache: Path,
    options: argparse.Namespace,
) -> tuple[str, Mapping[str, str]]:
    tree = fetch.source(cache, package, python, _log)
    folder = cache / "rewritten" / f"suites-{options.form}" / package.name
    rewritten = rewrite(package, tree, folder, 1800, options.form)
    if rewritten.error is not None:
        return f"| {package.name} | | | not rewritten |", {"rewrite": rewritten.error}
    tests = passed = kept = 0
    lost: dict[str, str] = {}
    for name in _files(tree, settings):
        before = _kept(python, tree, name, cache, options.timeout)
        after = _pytest(python, rewritten.after, name, cache, options.timeout)
        compared = compare(name, before, after)
        tests += compared.tests
        passed += len(compared.passed)
        kept += compared.kept
        lost |= compared.lost
        _log(f"{package.name}: {name}: {len(compared.passed)} passed, {compared.kept} after")
    return f"| {package.name} | {tests} | {passed} | {kept} |", lost


def _files(tree: Path, settings: Mapping[str, Any]) -> list[str]:
    found = {file for pattern in settings["files"] for file in tree.glob(pattern)}
    return [str(file.relative_to(tree)) for file in sorted(found)]


def _kept(python: Path, tree: Path, name: str, cache: Path, timeout: float) -> Outcomes:
    """What became of a file's tests before the rewrite; run once."""
    digest = hashlib.sha256(f"{tree}\0{name}\0{timeout}".encode()).hexdigest()[:24]
    file = cache / "packages" / f"suite-{digest}.json"
    if file.exists():
        content = json.loads(file.read_text(encoding="utf-8"))
        return {test: Outcome(**entry) for test, entry in content.items()}
    found = _pytest(python, tree, name, cache, timeout)
    content = {test: {"outcome": one.outcome, "error": one.error} for test, one in found.items()}
    file.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return found


def _pytest(python: Path, tree: Path, name: str, cache: Path, timeout: float) -> Outcomes:
    results = cache / "packages" / f"now-{os.getpid()}.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    environment = {**tool_environment(), "FLAX_SUITE_RESULTS": str(results)}
    environment["PYTHONPATH"] = f"{tree}{os.pathsep}{CHECKOUT}"
    command = [str(python), "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "benchmarks.flax_suite.plugin", "-c", os.devnull]
    command += ["--rootdir", str(tree), name]  # not this repository's settings
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {name: Outcome("failed", f"not finished after {timeout:g} s")}
    if not results.exists():
        return {name: Outcome("failed", last_line(done.stderr or done.stdout))}
    content = json.loads(results.read_text(encoding="utf-8"))
    results.unlink()
    return {test: Outcome(**entry) for test, entry in content.items()}


def _log(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
