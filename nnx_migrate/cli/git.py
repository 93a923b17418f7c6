"""What git says about files. Without git, or outside a repository, nothing is uncommitted."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


def dirty_files(root: Path, files: Sequence[Path]) -> frozenset[Path]:
    """Those of ``files`` that differ from the last commit or are not in it (ignored ones aside)."""
    if not files:
        return frozenset()
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None:
        return frozenset()
    listing = _git(root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    if listing is None:
        return frozenset()
    base = Path(top.removesuffix("\n")).resolve()
    dirty_paths = {base / entry[3:] for entry in listing.split("\0") if entry}
    return frozenset(file for file in files if file in dirty_paths)


def _git(directory: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(directory), *words],
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.decode("utf-8", "surrogateescape")
