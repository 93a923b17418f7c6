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
from nnx_migrate.parity.outcome import CommandOutcome, refusal
from nnx_migrate.parity.recordings.modules import (
    RecordingOptions,
    as_json,
    is_evidence,
    run_recordings,
    table,
)
from nnx_migrate.parity.summary import summary
from nnx_migrate.parity.words import BadWord


def run(words: Sequence[str]) -> CommandOutcome:
    """Run ``parity`` with the given ``key=value`` words. Never raises for bad input."""
    is_model = any(word.partition("=")[0] == "model" for word in words)
    return _attempt(lambda: _run_model(words) if is_model else _run_case(words))


def _run_case(words: Sequence[str]) -> CommandOutcome:
    read_words.require_keys(words, KEYS)
    values = read_words.read(words)
    comparison = file_comparison(values)
    files = read_words.output_files(values)
    if is_evidence(Path(values["case"])) and "certificate" not in values:
        return _run_recordings(values, comparison.options, files.get("report"))
    return _compare(comparison, values, files)


def _run_recordings(
    values: Mapping[str, str], options: FileOptions, report_file: Path | None
) -> CommandOutcome:
    """Every recorded module; 0 when some were compared and none differs or could not run."""
    path = Path(values["case"])
    options_of_run = RecordingOptions(
        before=values.get("before"),
        after=values.get("after"),
        map=values.get("map"),
        select=values.get("class"),
        instances=read_words.number(values, "instances", 1),
        shim=values.get("shim"),
        options=options,
    )
    rows = run_recordings(path, options_of_run)
    if report_file is not None:
        read_words.write("report", report_file, as_json(rows))
    ok = all(row.ok for row in rows) and any(row.has_comparison for row in rows)
    return CommandOutcome(0 if ok else 1, tuple(table(path, rows)))


def _run_model(words: Sequence[str]) -> CommandOutcome:
    values = read_words.read(words)
    options = model_options(values)
    if not options.distributed or "certificate" in values:
        return _compare_model(options, values)
    from nnx_migrate.parity.models import distributed

    distributed.join()
    if not distributed.is_first():
        values.pop("report", None)
    # First of all: a process that gave up later, alone, would leave the others waiting.
    ready = distributed.joint_outcome(_attempt(lambda: _ready(values)))
    if ready.exit_code:
        return ready
    return distributed.joint_outcome(_attempt(lambda: _compare_model(options, values)))


def _attempt(work: Callable[[], CommandOutcome]) -> CommandOutcome:
    try:
        return work()
    except (BadWord, CaseError) as error:
        return refusal(f"parity: {error}")


def _ready(values: Mapping[str, str]) -> CommandOutcome:
    read_words.output_files(values)
    return CommandOutcome(0, ())


def _compare_model(options: ModelOptions, values: Mapping[str, str]) -> CommandOutcome:
    files = read_words.output_files(values)
    return _compare(ModelComparison(options), values, files)


def _compare(
    comparison: FileComparison | ModelComparison,
    values: Mapping[str, str],
    files: Mapping[str, Path],
) -> CommandOutcome:
    """Compare, and write what the words ask for."""
    context = None
    if "certificate" in files:
        comparison = certifiable(values)
        context = prepare(values, os.environ)
    found = comparison.run()
    if "report" in files:
        read_words.write("report", files["report"], found.report.to_json())
    if context is not None:
        require_unchanged(context, values)
        text = certificate(context, found).to_json()
        read_words.write("certificate", files["certificate"], text)
    every_check = isinstance(comparison, ModelComparison)
    lines = summary(comparison.title, found.report, every_check=every_check)
    return CommandOutcome(0 if found.report.ok else 1, tuple(lines))
