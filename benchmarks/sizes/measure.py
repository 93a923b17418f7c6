"""Where the rewriter gets each needed size from, without and with what was recorded."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.corpus.rewriting import last_line, run_tool, within_file
from benchmarks.sizes.traced import Needed
from nnx_migrate.sizes.inference.records import DISAGREE

Report = Mapping[str, Any]


class MeasureError(Exception):
    """A package could not be rewritten; the message is one line."""


class Answer(StrEnum):
    """What becomes of one size. The code alone gives the first three."""

    FIELDS = "fields"  # an expression over the class's fields
    INPUTS = "inputs"  # one that also reads sizes of the class's inputs, which callers pass on
    ARGUMENT = "argument"  # a constructor argument that the code does not tell
    OPEN = (
        "open"  # none of them: an argument of a class that stays Linen, or no place in the report
    )
    WRONG = "wrong"  # the code's answer is not what was traced


STATIC = (Answer.FIELDS, Answer.INPUTS)


@dataclass(frozen=True)
class Size:
    """One needed size. ``told``: with evidence it is an expression; ``checked``: traces agree.

    ``linen``: the class that needs it stays Linen.
    """

    needed: Needed
    answer: Answer
    told: bool
    checked: bool
    linen: bool = False


@dataclass(frozen=True)
class Row:
    """One case. ``unchecked`` sizes are also counted by their answer; they make the run fail.

    ``untraced`` are classes that cannot be traced alone: what they need is not in ``needed``.
    ``linen`` sizes are also counted by their answer: their classes stay Linen for other reasons.
    """

    case: str
    needed: int
    fields: int
    inputs: int
    argument: int
    open: int
    told: int  # with evidence: an expression of the code or of the recording
    wrong: int
    unchecked: int
    untraced: int
    linen: int
    places: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def static(self) -> int:
        """Sizes that are an expression of the code."""
        return self.fields + self.inputs


def hashes_of(tree: Path) -> dict[str, str]:
    """Path in the package by the hash of the file's bytes."""
    return {
        hashlib.sha256(file.read_bytes()).hexdigest(): file.relative_to(tree).as_posix()
        for file in sorted(tree.rglob("*.py"))
        if file.is_file()
    }


def report_with_evidence(tree: Path, evidence: Path, timeout: float) -> Report:
    """The report of ``rewrite --evidence`` on a package; nothing of it is changed.

    Raises MeasureError.
    """
    report = evidence.with_suffix(".json")
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "nnx_migrate", "rewrite", str(tree), "--root", str(tree)]
    command += ["--check", "--report", str(report), "--evidence", str(evidence), "--no-cache"]
    try:
        done = run_tool(command, timeout)
    except subprocess.TimeoutExpired:
        raise MeasureError(f"not rewritten after {timeout:g} s") from None
    if not report.exists():
        raise MeasureError(last_line(done.stderr))
    content: Report = json.loads(report.read_text(encoding="utf-8"))
    return content


def sizes_of(sizes: Iterable[Needed], plain: Report, evidenced: Report) -> list[Size]:
    """What the two reports, without and with evidence, say of every needed size.

    The report tells sizes of classes that stay Linen, too. Such a size counts as an expression only
    where the traces agree; what would be an argument of a class that stays Linen is open.
    """
    alone, joined = dict(_entries(plain)), dict(_entries(evidenced))
    contradicted = _contradicted(evidenced)
    found = []
    for one in sizes:
        key = (one.path, one.line, one.column, one.argument, one.cls.rpartition(".")[2])
        source = joined[key].source if key in joined else None
        entry = alone.get(key)
        answer = entry.answer if entry else Answer.OPEN
        linen = entry is not None and not entry.rewritten
        if linen and (answer is Answer.ARGUMENT or source != "both"):
            answer = Answer.OPEN
        wrong = (one.path, one.cls) in contradicted
        told = source in _TOLD and not wrong
        found.append(
            Size(one, Answer.WRONG if wrong else answer, told, source == "both" and told, linen)
        )
    return found


def row(
    case: str, sizes: Iterable[Size], untraced: Iterable[str], built: Callable[[], bool]
) -> Row:
    """Count one case's sizes.

    ``built`` tells whether the rewritten classes of the case, built with the recorded numbers as
    their arguments, have parameters of the traced shapes. It is only asked when some size was not
    compared with the traces otherwise.
    """
    known = list(sizes)
    answered = (*STATIC, Answer.ARGUMENT)
    if any(one.answer in answered and not one.checked for one in known) and built():
        known = [replace(one, checked=True) for one in known]
    left_out = list(untraced)
    places: dict[str, list[str]] = {"untraced": left_out} if left_out else {}
    for one in known:
        if one.answer not in STATIC:
            places.setdefault(one.answer, []).append(one.needed.text)
        if one.answer in answered and not one.checked:
            places.setdefault("unchecked", []).append(one.needed.text)
        if not one.told:
            places.setdefault("not told", []).append(one.needed.text)
    counts = {answer: sum(one.answer is answer for one in known) for answer in Answer}
    return Row(
        case,
        len(known),
        counts[Answer.FIELDS],
        counts[Answer.INPUTS],
        counts[Answer.ARGUMENT],
        counts[Answer.OPEN],
        sum(one.told for one in known),
        counts[Answer.WRONG],
        len(places.get("unchecked", ())),
        len(left_out),
        sum(one.linen for one in known),
        places,
    )


_Key = tuple[str, int, int, str, str]  # path, line, column, argument, class
_TOLD = ("static", "both", "recorded")
_NO_INPUTS = {"self", "min", "max", "len", "int", "if", "else", "and", "or", "not", "None"}


@dataclass(frozen=True)
class _Entry:
    """What a report says of one size, and whether its class is rewritten."""

    answer: Answer
    source: str
    rewritten: bool


def _entries(report: Report) -> Iterator[tuple[_Key, _Entry]]:
    """Every size of the report with its place and its class."""
    for cls in report["classes"]:
        name, rewritten = cls["name"].rpartition(".")[2], cls["outcome"] == "rewritten"
        for size in cls.get("sizes", ()):
            key = (size["path"], size["line"], size["column"], size["argument"], name)
            yield key, _Entry(_answer(size, cls), size["source"], rewritten)


def _answer(size: Mapping[str, Any], cls: Mapping[str, Any]) -> Answer:
    """What the code alone gives."""
    if size["source"] == "argument":
        return Answer.ARGUMENT
    read = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", size["value"])) - _NO_INPUTS
    passed = read & set(cls["new_arguments"]) if cls["outcome"] == "rewritten" else read
    return Answer.INPUTS if passed else Answer.FIELDS


def _contradicted(report: Report) -> set[tuple[str, str]]:
    """Classes refused because the code's answer is not the recorded one."""
    return {
        (cls["path"], within_file(cls["name"], cls["path"]))
        for cls in report["classes"]
        if cls["outcome"] != "rewritten" and DISAGREE in (cls.get("reason") or "")
    }
