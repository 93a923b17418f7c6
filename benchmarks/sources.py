"""A hash of the project's own sources: what others gave says nothing about these."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def sources_digest(trees: Iterable[str], suffixes: Collection[str] = (".py",)) -> str:
    """A hash of the files, and of those below the folders, with one of the suffixes."""
    found = hashlib.sha256()
    for tree in trees:
        for path in (ROOT / tree, *sorted((ROOT / tree).rglob("*"))):
            if path.suffix in suffixes:
                found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
