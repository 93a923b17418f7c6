"""The words after ``nnx-migrate parity``: what they mean, what is printed, the exit code."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nnx_migrate.parity.case_file import CaseError, nearest
from nnx_migrate.parity.run_file import FileOptions, run_case_file

if TYPE_CHECKING:
    from nnx_migrate.parity.report import ParityReport

MODELS = (
    "deepseek",
    "deepseek2-16b",
    "deepseek3-671b",
    "deepseek3-671b-batchsplit",
    "gemma3-12b",
    "llama2-7b",
    "qwen3-0.6b",
)
KEYS = (
    "case",
    "model",
    "before",
    "after",
    "map",
    "report",
    "seed",
    "steps",
    "devices",
    "mesh",
    "shard_mode",
)


@dataclass(frozen=True)
class CommandOutcome:
    """What the command line prints and exits with: 0 equal, 1 different, 2 could not run."""

    exit_code: int
    lines: tuple[str, ...]


class BadWord(ValueError):
    """A word of the command line that cannot be used; the message is one line."""


def run(words: Sequence[str]) -> CommandOutcome:
    """Run ``parity`` with the given ``key=value`` words. Never raises for bad input."""
    try:
        given = _read(words)
        options = _options(given)
        report_file = _writable(given.get("report"))
        report = run_case_file(
            given["case"], given.get("before"), given.get("after"), given.get("map"), options
        )
        if report_file is not None:
            _write(report_file, report.to_json())
    except (BadWord, CaseError) as error:
        return CommandOutcome(2, (f"parity: {error}",))
    return CommandOutcome(0 if report.ok else 1, tuple(_summary(given["case"], report)))


def _read(words: Sequence[str]) -> dict[str, str]:
    """Split the words; refuse unknown, repeated, empty and missing keys."""
    given: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in KEYS:
            raise BadWord(f"unknown key {key!r}{nearest(key, KEYS)}")
        if not equals or not value:
            raise BadWord(f"{key}: expected {key}=VALUE")
        if key in given:
            raise BadWord(f"{key}= is given twice")
        given[key] = value
    if "model" in given:
        raise BadWord(_no_models(given["model"]))
    if "case" not in given:
        raise BadWord("nothing to compare: pass case=FILE.py")
    return given


def _no_models(name: str) -> str:
    if name not in MODELS:
        return f"model={name}: unknown model{nearest(name, MODELS)}"
    return f"model={name}: built-in models arrive in a later version; pass case=FILE.py"


def _options(given: Mapping[str, str]) -> FileOptions:
    devices = _number(given, "devices", 1)
    mesh = _mesh(given["mesh"]) if "mesh" in given else None
    if mesh is not None and devices is not None and math.prod(mesh.values()) > devices:
        needed = math.prod(mesh.values())
        raise BadWord(f"mesh={given['mesh']} needs {needed} devices, devices={devices} are given")
    return FileOptions(
        seed=_number(given, "seed", 0),
        steps=_number(given, "steps", 0),
        devices=devices,
        mesh=mesh,
        shard_mode=_choice(given, "shard_mode", ("auto", "explicit")),
    )


def _number(given: Mapping[str, str], key: str, least: int) -> int | None:
    if key not in given:
        return None
    text = given[key]
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise BadWord(f"{key}={text}: expected a whole number of at least {least}")
    return int(text)


def _mesh(text: str) -> dict[str, int]:
    """Read ``fsdp:4,expert:2``."""
    mesh: dict[str, int] = {}
    for part in text.split(","):
        axis, _, size = part.partition(":")
        if not axis.isidentifier() or not size.isdigit() or int(size) < 1 or axis in mesh:
            raise BadWord(f"mesh={text}: expected axis:size[,axis:size...], found {part!r}")
        mesh[axis] = int(size)
    return mesh


def _choice(given: Mapping[str, str], key: str, choices: Sequence[str]) -> str | None:
    if key in given and given[key] not in choices:
        raise BadWord(f"{key}={given[key]}: expected {' or '.join(choices)}")
    return given.get(key)


def _writable(name: str | None) -> Path | None:
    """Check the report's place before anything runs."""
    if name is None:
        return None
    path = Path(name)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadWord(f"report={name}: expected a file in an existing directory")
    return path


def _write(path: Path, text: str) -> None:
    """Write the report in one step: a reader never sees half of it."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise BadWord(f"report={path}: {error.strerror}") from error


def _summary(case: str, report: ParityReport) -> Iterator[str]:
    """Yield the verdict, every check that failed with its first details, and what was not run."""
    counts = Counter(check.status for check in report.checks)
    told = f"{counts['pass']} passed, {counts['fail']} failed, {counts['not_run']} not run"
    yield f"{case}: {report.verdict} ({told}; {report.seconds:.1f} s)"
    for check in report.checks:
        if check.status == "fail":
            yield f"  fail {check.name}: {_shortened(check.details)}"
    first = report.first_difference
    if first is not None:
        yield (
            f"  first difference at {first['path'] or 'the model itself'}: "
            f"Linen {first['linen']}; NNX {first['nnx']}"
        )
    if report.not_checked:
        yield f"  not checked: {_shortened(report.not_checked, most=len(report.not_checked))}"


def _shortened(details: Sequence[str], most: int = 3) -> str:
    """Join the first details; the report has all of them."""
    rest = [f"and {len(details) - most} more"] if len(details) > most else []
    return "; ".join([*details[:most], *rest])
