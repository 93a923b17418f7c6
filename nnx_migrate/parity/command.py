"""The words after ``nnx-migrate parity``: what they mean, what is printed, the exit code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nnx_migrate.parity import words as read_words
from nnx_migrate.parity.files.case_file import CaseError
from nnx_migrate.parity.files.process import MOST_SIMULATED
from nnx_migrate.parity.files.run import FileOptions, run_case_file
from nnx_migrate.parity.models.options import ModelOptions, model_options
from nnx_migrate.parity.outcome import CommandOutcome
from nnx_migrate.parity.recorded.modules import (
    RecordedOptions,
    as_json,
    is_evidence,
    run_recorded,
    table,
)
from nnx_migrate.parity.summary import summary
from nnx_migrate.parity.words import BadWord

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
    "class",
    "instances",
    "shim",
)


def run(words: Sequence[str]) -> CommandOutcome:
    """Run ``parity`` with the given ``key=value`` words. Never raises for bad input."""
    is_model = any(word.partition("=")[0] == "model" for word in words)
    return _attempt(lambda: _run_model(words) if is_model else _run_case(words))


def _run_case(words: Sequence[str]) -> CommandOutcome:
    read_words.require_known(words, KEYS)
    given = read_words.read(words)
    if "case" not in given:
        raise BadWord("nothing to compare: pass case=FILE.py or model=NAME")
    options = _options(given)
    report_file = read_words.report_file(given)
    if is_evidence(Path(given["case"])):
        return _run_recorded(given, options, report_file)
    for key in ("class", "instances", "shim"):
        if key in given:
            raise BadWord(f"{key}= is for case=FILE.db, a file that record wrote")
    report = run_case_file(
        given["case"], given.get("before"), given.get("after"), given.get("map"), options
    )
    if report_file is not None:
        read_words.write(report_file, report.to_json())
    return CommandOutcome(0 if report.ok else 1, tuple(summary(given["case"], report)))


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
        read_words.write(report_file, as_json(rows))
    ok = all(row.ok for row in rows) and any(row.compared for row in rows)
    return CommandOutcome(0 if ok else 1, tuple(table(path, rows)))


def _run_model(words: Sequence[str]) -> CommandOutcome:
    given = read_words.read(words)
    options = model_options(given)
    if not options.distributed:
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
        return CommandOutcome(2, (f"parity: {error}",))


def _ready(given: Mapping[str, str]) -> CommandOutcome:
    read_words.report_file(given)
    return CommandOutcome(0, ())


def _compare_model(options: ModelOptions, given: Mapping[str, str]) -> CommandOutcome:
    report_file = read_words.report_file(given)
    from nnx_migrate.parity.models.full import run_full
    from nnx_migrate.parity.models.run import run_model

    report = run_full(options) if options.size == "full" else run_model(options)
    if report_file is not None:
        read_words.write(report_file, report.to_json())
    lines = summary(options.describe(), report, every_check=True)
    return CommandOutcome(0 if report.ok else 1, tuple(lines))


def _options(given: Mapping[str, str]) -> FileOptions:
    devices = read_words.number(given, "devices", 1)
    mesh = read_words.mesh_sizes(given["mesh"]) if "mesh" in given else None
    if mesh is not None and devices is not None and math.prod(mesh.values()) > devices:
        needed = math.prod(mesh.values())
        raise BadWord(f"mesh={given['mesh']} needs {needed} devices, devices={devices} are given")
    needed = max(devices or 1, math.prod((mesh or {}).values()))
    if needed > MOST_SIMULATED:
        word = f"mesh={given['mesh']}" if mesh else f"devices={devices}"
        raise BadWord(
            f"{word}: expected at most {MOST_SIMULATED} simulated devices, found {needed}"
        )
    return FileOptions(
        seed=read_words.number(given, "seed", 0),
        steps=read_words.number(given, "steps", 0),
        devices=devices,
        mesh=mesh,
        shard_mode=read_words.choice(given, "shard_mode", ("auto", "explicit")),
    )
