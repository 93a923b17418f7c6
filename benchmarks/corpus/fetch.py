"""Fetch the pinned packages: an environment to run them in, and one source tree each.

Everything goes under the cache folder; a finished step leaves a stamp and is not repeated.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.corpus.packages import Package

Log = Callable[[str], None]


class FetchError(Exception):
    """A package could not be fetched; the message is one line."""


def environment(cache: Path, requirements: Sequence[str], log: Log) -> Path:
    """Return the Python of the corpus environment, with the pins installed in it.

    All sets share one environment; each adds its own pins.
    """
    folder = cache / "environment"
    python = folder / "bin" / "python"
    if not python.exists():
        log("creating the environment")
        _run([sys.executable, "-m", "venv", str(folder)])
    digest = hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:16]
    stamp = folder / f"installed-{digest}"
    if not stamp.exists():
        log(f"installing {len(requirements)} pinned distributions")
        listed = folder / "requirements.txt"
        listed.write_text("\n".join(requirements) + "\n", encoding="utf-8")
        _pip(python, "install", "--no-deps", "--prefer-binary", "-r", str(listed))
        stamp.touch()
    return python


def source(cache: Path, package: Package, python: Path, log: Log) -> Path:
    """Return the tree of a package as published: the folder to rewrite, and to import from."""
    if package.path is not None:
        return sdist(cache, package.requirement, python, log) / package.path
    tree = cache / "sources" / f"{package.distribution}-{package.version}"
    if not tree.exists():
        log(f"fetching {package.requirement}")
        with tempfile.TemporaryDirectory(dir=_made(cache)) as scratch:
            unpacked = Path(scratch) / "tree"
            _pip(python, "install", "--no-deps", "--no-compile", "--target", str(unpacked),
                 package.requirement)  # fmt: skip
            _made(tree.parent)
            unpacked.rename(tree)
    return tree


def sdist(cache: Path, requirement: str, python: Path, log: Log) -> Path:
    """Return the unpacked source distribution of a pin."""
    tree = cache / "sources" / f"{requirement.replace('==', '-')}-sdist"
    if not tree.exists():
        log(f"fetching the source distribution of {requirement}")
        with tempfile.TemporaryDirectory(dir=_made(cache)) as scratch:
            _pip(python, "download", "--no-deps", "--no-binary", ":all:", "-d", scratch,
                 requirement)  # fmt: skip
            (archive,) = Path(scratch).glob("*.tar.gz")
            unpacked = Path(scratch) / "tree"
            with tarfile.open(archive) as content:
                content.extractall(unpacked, filter="data")
            (top,) = unpacked.iterdir()
            _made(tree.parent)
            shutil.move(top, tree)
    return tree


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _pip(python: Path, *arguments: str) -> None:
    _run([str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "ERROR" in line] or lines or ["no output"]
        raise FetchError(f"{' '.join(command[:5])} ... failed: {errors[-1].strip()}")
