"""The words after ``nnx-migrate parity``: what they mean, what is printed, the exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nnx_migrate.parity import words as read_words
from nnx_migrate.parity.certificate.making import certificate
from nnx_migrate.parity.certificate.preparing import prepare, require_unchanged
from nnx_migrate.parity.comparison import (
    KEYS,
    FileComparison,
    ModelComparison,
    certifiable,
    file_comparison,
)
from nnx_migrate.parity.files.case_file import CaseError
from nnx_migrate.parity.files.run import FileOptions
from nnx_migrate.parity.models.options import ModelOptions, model_options
from nnx_migrate.parity.outcome import CommandOutcome, refused
from nnx_migrate.parity.recordings.modules import (
    RecordedOptions,
    as_json,
    is_evidence,
    run_recorded,
    table,
)
from nnx_migrate.parity.summary import summary
from nnx_migrate.parity.words import BadWord


def run(words: Sequence[str]) -> CommandOutcome:
    """Run ``parity`` with the given ``key=value`` words. Never raises for bad input."""
    is_model = any(word.partition("=")[0] == "model" for word in words)
    return _attempt(lambda: _run_model(words) if is_model else _run_case(words))


def _run_case(words: Sequence[str]) -> CommandOutcome:
    read_words.require_known(words, KEYS)
    given = read_words.read(words)
    comparison = file_comparison(given)
    files = read_words.output_files(given)
    if is_evidence(Path(given["case"])) and "certificate" not in given:
        return _run_recorded(given, comparison.options, files.get("report"))
    return _compared(comparison, given, files)


def _run_recorded(
    given: Mapping[str, str], options: FileOptions, report_file: Path | None
) -> CommandOutcome:
    """Every recorded module; 0 when some were compared and none differs or could not run."""
    path = Path(given["case"])
    chosen = RecordedOptions(
        before=given.get("before"),
        after=given.get("after"),
        map=given.get("map"),
        select=given.get("class"),
        instances=read_words.number(given, "instances", 1),
        shim=given.get("shim"),
        options=options,
    )
    rows = run_recorded(path, chosen)
    if report_file is not None:
        read_words.write("report", report_file, as_json(rows))
    ok = all(row.ok for row in rows) and any(row.compared for row in rows)
    return CommandOutcome(0 if ok else 1, tuple(table(path, rows)))


def _run_model(words: Sequence[str]) -> CommandOutcome:
    given = read_words.read(words)
    options = model_options(given)
    if not options.distributed or "certificate" in given:
        return _compare_model(options, given)
    from nnx_migrate.parity.models import distributed

    distributed.join()
    if not distributed.is_first():
        given.pop("report", None)
    # First of all: a process that gave up later, alone, would leave the others waiting.
    ready = distributed.agreed(_attempt(lambda: _ready(given)))
    if ready.exit_code:
        return ready
    return distributed.agreed(_attempt(lambda: _compare_model(options, given)))


def _attempt(work: Callable[[], CommandOutcome]) -> CommandOutcome:
    try:
        return work()
    except (BadWord, CaseError) as error:
        return refused(f"parity: {error}")


def _ready(given: Mapping[str, str]) -> CommandOutcome:
    read_words.output_files(given)
    return CommandOutcome(0, ())


def _compare_model(options: ModelOptions, given: Mapping[str, str]) -> CommandOutcome:
    files = read_words.output_files(given)
    return _compared(ModelComparison(options), given, files)


def _compared(
    comparison: FileComparison | ModelComparison,
    given: Mapping[str, str],
    files: Mapping[str, Path],
) -> CommandOutcome:
    """Compare, and write what the words ask for."""
    prepared = None
    if "certificate" in files:
        comparison = certifiable(given)
        prepared = prepare(given, os.environ)
    found = comparison.run()
    if "report" in files:
        read_words.write("report", files["report"], found.report.to_json())
    if prepared is not None:
        require_unchanged(prepared, given)
        text = certificate(prepared, found).to_json()
        read_words.write("certificate", files["certificate"], text)
    every_check = isinstance(comparison, ModelComparison)
    lines = summary(comparison.title, found.report, every_check=every_check)
    return CommandOutcome(0 if found.report.ok else 1, tuple(lines))
