"""A hash of the project's own sources: what others gave says nothing about these."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def sources_digest(trees: Iterable[str], suffixes: Collection[str] = (".py",)) -> str:
    """A hash of all files below the folders with one of the suffixes, with their paths."""
    found = hashlib.sha256()
    for tree in trees:
        for path in sorted((ROOT / tree).rglob("*")):
            if path.suffix in suffixes:
                found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
