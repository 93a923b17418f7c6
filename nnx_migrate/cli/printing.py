"""What a person sees: plain lines in a pipe, a table and a spinner on a terminal."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from nnx_migrate.model import FileStatus, Finding, Form, Outcome, RewriteResult, Tally


def error(message: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"nnx-migrate: error: {' '.join(message.split())}\n")


@contextmanager
def working(message: str) -> Iterator[None]:
    """A spinner while something runs, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(message):
        yield


def file_errors(result: RewriteResult) -> None:
    """One line on stderr per file that failed."""
    for file in result.files:
        if file.status is FileStatus.FAILED:
            error(f"{file.path}: {file.error}")


def diff(path: str, before: str, after: str) -> str:
    """A unified diff with the newlines of the texts, and a note where the last one is missing."""
    lines: list[str] = []
    pieces = difflib.unified_diff(
        _lines(before), _lines(after), f"a/{path}", f"b/{path}", lineterm="\n"
    )
    for line in pieces:
        lines.append(line)
        if not line.endswith("\n"):
            lines.append("\n\\ No newline at end of file\n")
    return "".join(lines)


def _lines(text: str) -> list[str]:
    """Lines as patch tools see them: only a line feed ends one."""
    pieces = text.split("\n")
    return [piece + "\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def summary(result: RewriteResult, *, would: bool, tell_lazy: bool = False) -> None:
    """What was refused, line by line, with ``tell_lazy`` also what stays lazy, and the totals."""
    for line in refusals(result):
        sys.stdout.write(f"{line}\n")
    for line in _lazy(result) if tell_lazy else _common_reason(result):
        sys.stdout.write(f"{line}\n")
    if sys.stdout.isatty():
        _table(result)
    else:
        sys.stdout.write(f"{_totals(result, would=would)}\n")


def refusals(result: RewriteResult) -> Iterable[str]:
    """``path:line:column: rule: message`` for all that a person has to see."""
    places = {(one.path, one.line): one for one in result.classes if one.reason is not None}
    lines = sorted(
        (finding for finding in result.findings if finding.outcome is Outcome.REFUSED),
        key=lambda finding: (finding.path, finding.line, finding.column),
    )
    yield from (_line(finding) for finding in lines)
    printed_places = {(finding.path, finding.line) for finding in lines}
    for place, one in sorted(places.items()):
        if one.outcome is Outcome.REFUSED and place not in printed_places:
            reason = " ".join((one.reason or "").split())
            yield f"{one.path}:{one.line}:1: class: {one.name} refused: {reason}"


def _lazy(result: RewriteResult) -> Iterable[str]:
    for one in result.classes:
        if one.form is Form.LAZY:
            reason = " ".join((one.reason or "not proven").split())
            where = f" ({one.reason_place})" if one.reason_place is not None else ""
            yield f"{one.path}:{one.line}:1: lazy: {one.name} stays lazy: {reason}{where}"


def _common_reason(result: RewriteResult) -> Iterable[str]:
    """The reason that most lazy classes share, if one does: often one line of code or of settings lifts it.

    An example: ``lazy: 448 of 450 lazy classes for one reason: not proven: hub.py:20: ...``.
    """
    reasons = [one.reason for one in result.classes if one.form is Form.LAZY]
    for reason, count in Counter(reasons).most_common(1):
        if reason is not None and count > 1 and 2 * count > len(reasons):
            text = " ".join(reason.split())
            yield f"lazy: {count} of {len(reasons)} lazy classes for one reason: {text}"


def _line(finding: Finding) -> str:
    place = f"{finding.path}:{finding.line}:{finding.column}"
    return f"{place}: {finding.rule}: {' '.join(finding.message.split())}"


def _totals(result: RewriteResult, *, would: bool) -> str:
    statuses = [file.status for file in result.files]
    verb = "would be rewritten" if would else "rewritten"
    return (
        f"{statuses.count(FileStatus.REWRITTEN)} files {verb}, "
        f"{statuses.count(FileStatus.UNCHANGED)} unchanged, "
        f"{statuses.count(FileStatus.FAILED)} failed; "
        f"classes: {_forms(result)}; "
        f"references: {_counts(result.references)}; call sites: {_counts(result.call_sites)}"
    )


def _classes(result: RewriteResult) -> Tally:
    outcomes = [one.outcome for one in result.classes]
    return Tally(len(outcomes), *(outcomes.count(outcome) for outcome in Outcome))


def _forms(result: RewriteResult) -> str:
    """``5 (3 explicit, 1 lazy, 1 kept)``."""
    words = [one.form.value if one.form else one.outcome.value for one in result.classes]
    order = ("explicit", "lazy", *(one.value for one in Outcome))
    parts = [f"{words.count(word)} {word}" for word in order if word in words]
    return f"{len(words)} ({', '.join(parts)})" if parts else str(len(words))


def _counts(tally: Tally) -> str:
    counts = {one.value: getattr(tally, one.value) for one in Outcome}
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    return f"{tally.total} ({', '.join(parts)})" if parts else str(tally.total)


def _table(result: RewriteResult) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", "total", *(outcome.value for outcome in Outcome))
    rows = (
        ("classes", _classes(result)),
        ("references", result.references),
        ("call sites", result.call_sites),
    )
    for name, tally in rows:
        counts = (getattr(tally, outcome.value) for outcome in Outcome)
        table.add_row(name, str(tally.total), *map(str, counts))
    console = Console()
    console.print(table)
    console.print(f"classes by form: {_forms(result)}")
