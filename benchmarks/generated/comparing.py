"""A project before and after both rewrites: what became of the classes, and of what is printed."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from benchmarks.comments.keeping import changed_statements, lost_comments
from benchmarks.generated.projects import Project
from benchmarks.generated.running import Raised, Transcript, transcript
from benchmarks.generated.transcripts import Runner
from nnx_migrate.model import FileStatus, Form, RewriteResult
from nnx_migrate.model import Outcome as Decision
from nnx_migrate.rewrite.forms import rewrite_in
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.files import SourceText

ROOT = Path("/project")  # no file is read: only a name
FORMS = ("lazy", "auto")
EQUAL = "equal"
# Outcomes that nothing is wrong with.
FINE = frozenset({EQUAL, "equal by operation"})


@dataclass(frozen=True)
class Outcome:
    """What became of a project in one form.

    Attributes:
      kind: `EQUAL`; "equal by operation" where only the compiled programs round apart; else
        "different", "raises", "crash", "unconverted", "comments", "not stable", or "broken" where a
        caller is left that will not run.
      detail: the first difference, or the error.
      classes: how many classes there are.
      explicit: how many of them are explicit.
    """

    kind: str
    detail: str = ""
    classes: int = 0
    explicit: int = 0


def linen_of(project: Project, run: Runner = transcript) -> Transcript:
    """What the project prints as it is, or what it raises."""
    return run(dict(project.files))


@functools.lru_cache(maxsize=1)
def _run(files: tuple[tuple[str, str], ...], run: Runner) -> Transcript:
    """What rewritten files print: where both forms are the same text, it runs once."""
    return run(dict(files))


def outcome(project: Project, form: str, wanted: Transcript, run: Runner = transcript) -> Outcome:
    """Rewrite in ``form``, run, and compare with ``wanted``.

    Where Linen raises, the lazy form raises the same, and the other is not looked at.
    """
    files = dict(project.files)
    try:
        result = rewritten(files, form)
    except Exception as error:  # noqa: BLE001 - a crash is an outcome
        return Outcome("crash", str(Raised.of(error)))
    counts = (len(result.classes), sum(one.form is Form.EXPLICIT for one in result.classes))
    after = texts(result, files)
    wrong = _refused(result) or _lost(files, after)
    if wrong:
        return Outcome(*wrong, *counts)
    found = _run(tuple(after.items()), run)
    if isinstance(wanted, Raised):
        then = found if isinstance(found, Raised) else Raised("runs", "")
        alike = form != "lazy" or then.kind == wanted.kind
        return Outcome(
            EQUAL if alike else "different",
            "" if alike else f"Linen raises {wanted}; then {then}",
            *counts,
        )
    return Outcome(*_compared(files, after, wanted, found), *counts)


def rewritten(files: Mapping[str, str], form: str) -> RewriteResult:
    """The project's files rewritten as the command does with ``--form``."""
    sources = tuple(SourceText(ROOT / path, text) for path, text in files.items())
    return rewrite_in(RewriteRequest(ROOT, sources, base=ROOT), form)


def texts(result: RewriteResult, files: Mapping[str, str]) -> dict[str, str]:
    """The project after the run."""
    new = {one.path: one.code for one in result.files if one.code is not None}
    return {path: new.get(path, text) for path, text in files.items()}


def _refused(result: RewriteResult) -> tuple[str, str] | None:
    for file in result.files:
        if file.status is FileStatus.FAILED:
            return "crash", f"{file.path}: {file.error}"
    for finding in result.findings:
        if finding.rule == "internal":
            return "crash", finding.message
        if finding.rule == "call_site" and finding.outcome is Decision.REFUSED:
            return "broken", f"{finding.path}: {finding.message}"
    for one in result.classes:
        if one.form is None:
            return "unconverted", f"{one.name}: {one.outcome.value}: {one.reason}"
    return None


def _lost(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, str] | None:
    for path, text in before.items():
        if after[path] != text and (lost := lost_comments(text, after[path])):
            return "comments", f"{path}: lost {lost[0]}"
        if after[path] != text and (other := changed_statements(text, after[path])):
            return "comments", f"{path}: not byte for byte: {other[0]}"
    return None


def _compared(
    before: Mapping[str, str],
    after: Mapping[str, str],
    wanted: list[str],
    found: Transcript,
) -> tuple[str, str]:
    if isinstance(found, Raised):
        return "raises", str(found)
    if not wanted:
        return "different", "nothing was printed, so nothing was compared"
    detail = difference(wanted, found)
    if not detail:
        return EQUAL, ""
    if not difference(wanted, found, exact=False):
        # XLA's two programs may round apart, and without jit the bodies of loops are such programs
        # too; operation by operation nothing does.
        with jax.disable_jit():
            first, second = transcript(before), transcript(after)
        if isinstance(first, list) and isinstance(second, list) and not difference(first, second):
            return "equal by operation", detail
    return "different", detail


def difference(wanted: Sequence[str], found: Sequence[str], *, exact: bool = True) -> str:
    """The first line that differs; empty when none does. Not ``exact``: to the last few bits."""
    for one, other in zip(wanted, found, strict=False):
        if one != other and (exact or not _close(one, other)):
            return f"{one[:160]} | {other[:160]}"
    if len(wanted) != len(found):
        longer = max(wanted, found, key=len)
        return (
            f"{len(wanted)} lines, then {len(found)}: {longer[min(len(wanted), len(found))][:160]}"
        )
    return ""


def _close(one: str, other: str) -> bool:
    """Whether two printed arrays of one name, type and shape are equal to the last few bits."""
    first, second = one.rsplit(" ", 1), other.rsplit(" ", 1)
    if first[0] != second[0] or " float32 " not in first[0] or len(first[1]) != len(second[1]):
        return False
    values = [np.frombuffer(bytes.fromhex(text), np.float32) for text in (first[1], second[1])]
    close = 1e-5 * (1 + np.max(np.abs(values[0]), initial=0))
    return bool(np.allclose(values[1], values[0], rtol=1e-4, atol=close))
