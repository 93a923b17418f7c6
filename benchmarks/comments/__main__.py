"""Whether rewriting loses what people wrote: ``python -m benchmarks.comments FOLDER...``.

Each folder is rewritten in memory, by the engine of the explicit form alone. Of every file that
changes, the comments before and after are compared as multisets, and the text of each statement
whose syntax tree stays the same has to stay the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.comments.keeping import changed_statements, lost_comments, new_comments
from nnx_migrate.model import Outcome
from nnx_migrate.rewrite.engine import rewrite_project
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.files import SourceText, read


@dataclass
class Found:
    """What rewriting one folder does."""

    files: int = 0
    changed: int = 0
    classes: int = 0
    explicit: int = 0
    lost: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)


def main(arguments: Sequence[str]) -> int:
    """Print a line for each folder, and every comment that is lost.

    Returns 1 when something is lost.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comments", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    bad = False
    for folder in parser.parse_args(arguments).folders:
        start = time.monotonic()
        found = _measure(folder)
        bad = bad or bool(found.lost or found.touched)
        print(
            f"{folder.name}: {found.files} files, {found.changed} change; {found.explicit} of"
            f" {found.classes} classes explicit; comments lost {len(found.lost)}, new"
            f" {len(found.added)}; statements with another text {len(found.touched)};"
            f" {time.monotonic() - start:.0f} s",
            flush=True,
        )
        for one in (*found.lost, *found.touched):
            print(f"  {one}", flush=True)
    return int(bad)


def _measure(folder: Path) -> Found:
    sources = {str(one.path): one for one in _sources(folder)}
    request = RewriteRequest(folder, tuple(sources.values()), base=folder)
    result = rewrite_project(request)
    found = Found(len(sources), classes=len(result.classes))
    found.explicit = sum(one.outcome is Outcome.REWRITTEN for one in result.classes)
    for file in result.files:
        if file.code is None:
            continue
        found.changed += 1
        before = sources[str(folder / file.path)].text
        found.lost += [f"{file.path}: {one}" for one in lost_comments(before, file.code)]
        found.added += [f"{file.path}: {one}" for one in new_comments(before, file.code)]
        found.touched += [f"{file.path}: {one}" for one in changed_statements(before, file.code)]
    return found


def _sources(folder: Path) -> Iterator[SourceText]:
    for path in sorted(folder.rglob("*.py")):
        found = read(path)
        if isinstance(found, SourceText):
            yield found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
