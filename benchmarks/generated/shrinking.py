"""Smaller projects with the same fault: statements are left out while it shows."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable

from benchmarks.generated.projects import Project


def shrunk(
    project: Project, is_faulty: Callable[[Project], bool], seconds: float = 120.0
) -> Project:
    """The smallest project found in that time of which ``is_faulty`` still holds."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        smaller = _without(project, number)
        if smaller is None:
            return project
        if is_faulty(smaller):
            project = smaller  # what follows now stands at this number
        else:
            number += 1
    return project


def _without(project: Project, number: int) -> Project | None:
    """The project without its statement of that number, large ones first; None when there are fewer."""
    for at, (path, text) in enumerate(project.files):
        spans = _spans(text)
        if number < len(spans):
            changed = _cut(text, *spans[number])
            files = (*project.files[:at], (path, changed), *project.files[at + 1 :])
            return Project(files)
        number -= len(spans)
    return None


def _spans(text: str) -> list[tuple[int, int, bool]]:
    """First and last line of every statement, and whether its block has no other."""
    found: list[tuple[int, int, bool]] = []
    for node in ast.walk(ast.parse(text)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            for one in block:
                first = min([one.lineno, *(d.lineno for d in getattr(one, "decorator_list", ()))])
                if not isinstance(one, ast.Pass):
                    found.append((first, one.end_lineno or first, len(block) == 1))
    return found


def _cut(text: str, first: int, last: int, is_only: bool) -> str:
    lines = text.splitlines(keepends=True)
    line = lines[first - 1]
    pad = line[: len(line) - len(line.lstrip())]
    return "".join([*lines[: first - 1], *([f"{pad}pass\n"] if is_only else []), *lines[last:]])
