"""``parity case=sizes.db``: every recorded module, before against after, without a case by hand."""

from __future__ import annotations

import fnmatch
import json
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnx_migrate.evidence.observations import Instance
from nnx_migrate.evidence.read import Evidence, load
from nnx_migrate.evidence.schema import EvidenceError
from nnx_migrate.evidence.values import arrays, unreadable
from nnx_migrate.model import MigrationMap
from nnx_migrate.parity.files.case_file import CaseError
from nnx_migrate.parity.files.process import Job, Side, SideRun, run_sides
from nnx_migrate.parity.files.run import FileOptions, compare, following, job_of, judge
from nnx_migrate.parity.files.trees import BadTree, open_trees
from nnx_migrate.parity.instantiation.local_classes import LOCALS
from nnx_migrate.parity.recordings.folders import folders_of, with_folders

if TYPE_CHECKING:
    from nnx_migrate.parity.report import Check, ParityReport

_NOT_CHANGED = ("params", "intermediates")  # by a call of the migrated module
CALL = "__call__"
_MAGIC = b"SQLite format 3\0"

_CASE = """\
from pathlib import Path

{shim}from nnx_migrate.parity.recordings.replay import Replay

_recorded = Replay(Path(__file__).with_suffix(".json"))
linen, inputs = _recorded.linen, _recorded.inputs
{initial}CASE = {settings!r}
"""


@dataclass(frozen=True)
class Row:
    """One recorded instance: its verdict, or why there is none."""

    name: str  # class and shapes
    verdict: str
    ok: bool
    has_comparison: bool
    detail: str = ""
    report: ParityReport | None = None


@dataclass(frozen=True)
class RecordingOptions:
    """Where both sides are and what is chosen.

    ``select`` is a glob over qualified class names, ``instances`` the most of one class to run.
    """

    before: str | None = None
    after: str | None = None
    map: str | None = None
    select: str | None = None
    instances: int | None = None
    shim: str | None = None
    options: FileOptions = field(default_factory=FileOptions)


def is_evidence(path: Path) -> bool:
    """Whether a file is an SQLite database, and so no case file."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def run_recordings(path: Path, options: RecordingOptions) -> list[Row]:
    """Compare every chosen instance of an evidence file.

    Raises:
        CaseError: nothing can be run at all; the message is one line.
    """
    try:
        evidence = load(path)
    except EvidenceError as error:
        raise CaseError(str(error)) from error
    instances = list(_select(evidence, options.select))
    if not instances:
        raise CaseError(f"case={path}: no recorded class matches {options.select or '*'}")
    rewritten = _rewritten(options.map)
    directory = Path(tempfile.mkdtemp(prefix="nnx-migrate-recorded-"))
    try:
        rows: dict[int, Row] = {}
        cases: dict[int, Path] = {}
        reasons = [_left_out(one, failure, rewritten) for one, failure in instances]
        beyond = _beyond([one for one, _ in instances], reasons, options.instances)
        for number, (one, _) in enumerate(instances):
            reason = reasons[number]
            if number in beyond:
                reason = f"instances={options.instances} of this class were compared"
            if reason is None:
                file = directory / f"case{number}.py"
                cases[number] = _write_case(
                    file, one, [each for each, _ in instances], options.shim
                )
            else:
                rows[number] = Row(_title(one), "not compared", True, False, reason)
        if cases:
            rows |= _run_all(cases, [one for one, _ in instances], evidence, directory, options)
        return [rows[number] for number in sorted(rows)]
    except BadTree as error:
        raise CaseError(str(error)) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _select(evidence: Evidence, select: str | None) -> Iterator[tuple[Instance, str | None]]:
    """Recorded calls of the chosen classes, and why one cannot be called alone.

    A class that was called by another method alone is called by that.
    """
    for cls in evidence.classes:
        name = cls.key.qualname.partition(":")[0]  # of several classes of one name, all are chosen
        full = f"{cls.key.module}.{name}"
        if select is None or fnmatch.fnmatch(full, select) or select in (name, cls.key.qualname):
            methods = {one.method for one in cls.instances.values()}
            for number, one in cls.instances.items():
                if one.method == CALL or CALL not in methods:
                    yield one, cls.failures.get(number)


def _rewritten(file: str | None) -> set[str] | None:
    """Classes that a migration map says were rewritten; None without a map."""
    if file is None:
        return None
    from nnx_migrate.parity.instantiation.migration_map import BadMap, load_map

    try:
        content: MigrationMap = load_map(Path(file))
    except BadMap as error:
        raise CaseError(str(error)) from error
    return {entry.linen for entry in content.classes}


def _left_out(one: Instance, failure: str | None, rewritten: set[str] | None) -> str | None:
    """Why an instance is not run at all."""
    name = f"{one.cls.module}.{one.cls.qualname}"
    if rewritten is not None and name not in rewritten:
        return "the class stays Linen"
    if failure is not None:
        return failure
    parts = [*unreadable(one.fields), *(w for v in one.inputs.values() for w in unreadable(v))]
    return f"it holds {parts[0]}" if parts else None


def _beyond(
    instances: Sequence[Instance], reasons: Sequence[str | None], most: int | None
) -> frozenset[int]:
    """Numbers of the instances beyond ``most`` of a class; those with other fields come first."""
    runnable: dict[object, list[int]] = {}
    for number, one in enumerate(instances):
        if reasons[number] is None:
            runnable.setdefault(one.cls, []).append(number)
    beyond: set[int] = set()
    for numbers in runnable.values() if most is not None else ():
        fields = {json.dumps(instances[n].fields, sort_keys=True): n for n in reversed(numbers)}
        different = sorted(fields.values())
        order = [*different, *(n for n in numbers if n not in different)]
        beyond.update(order[most:])
    return frozenset(beyond)


def _title(one: Instance) -> str:
    shapes = [
        f"{name}[{','.join(map(str, shape))}]"
        for argument, value in one.inputs.items()
        for name, shape in arrays(value, argument)
    ]
    more = f" and {len(shapes) - 3} more" if len(shapes) > 3 else ""
    method = "" if one.method == CALL else f".{one.method}"
    return f"{one.cls.module}.{one.cls.qualname}({', '.join(shapes[:3])}{more}){method}"


def _initialization(one: Instance, instances: Sequence[Instance]) -> Instance:
    """The call that initialised a module: this one, or one of the same module on the same arrays.

    ``init`` may have been called with ``train=False``, and only ``apply`` with ``train=True``.
    """

    def alike(other: Instance) -> bool:
        return (
            other.is_initialization
            and (other.cls, other.method) == (one.cls, one.method)
            and (other.fields, other.arguments) == (one.fields, one.arguments)
            and _shapes(other) == _shapes(one)
        )

    return one if one.is_initialization else next(filter(alike, instances), one)


def _shapes(one: Instance) -> dict[str, tuple[int, ...]]:
    pairs = (found for name, value in one.inputs.items() for found in arrays(value, name))
    return dict(pairs)


def _changing(collections: Collection[str]) -> tuple[str, ...]:
    """Collections whose changes are compared; names of axes are none.

    ``flax.linen.partitioning`` keeps the names of ``params`` in ``params_axes``, without an array.
    """
    left_out = {*_NOT_CHANGED, *(f"{name}_axes" for name in collections)}
    return tuple(name for name in collections if name not in left_out)


def _write_case(file: Path, one: Instance, instances: Sequence[Instance], shim: str | None) -> Path:
    """Write a case file, and the recorded fields and inputs beside it."""
    collections = one.collections or one.mutable  # what init makes, else what a call may make
    settings = {
        "rngs": dict.fromkeys((*one.rngs, "params"), 0),  # what init draws from, too
        "collections": _changing(collections),
        "stateless": not one.collections,
        "method": None if one.method == CALL else one.method,
    }
    load_shim = f"import runpy\n\nrunpy.run_path({str(Path(shim).absolute())!r})\n" if shim else ""
    first = _initialization(one, instances)
    initial = "" if first is one else "initial = _recorded.initial\n"
    file.write_text(
        _CASE.format(settings=settings, shim=load_shim, initial=initial), encoding="utf-8"
    )
    owner, local, _ = one.cls.qualname.rpartition(f".{LOCALS}.")
    around = [one.cls.module, owner, dict(one.arguments)] if local else None
    content = {
        "fields": one.fields,
        "inputs": dict(one.inputs),
        "passed": dict(one.argument_kinds),
        "initial": {"inputs": dict(first.inputs), "passed": dict(first.argument_kinds)},
        "around": around,
    }
    file.with_suffix(".json").write_text(json.dumps(content), encoding="utf-8")
    return file


def _run_all(
    cases: Mapping[int, Path],
    instances: Sequence[Instance],
    evidence: Evidence,
    directory: Path,
    recording_options: RecordingOptions,
) -> dict[int, Row]:
    """Run the before side of all cases in one process, then the after side, and judge each."""
    first = next(iter(cases.values()))
    with open_trees(first, recording_options.before, recording_options.after) as trees:
        folders = folders_of(evidence, trees.before)

        def jobs(side: Side, entries: tuple[Path, ...], numbers: Iterable[int]) -> dict[int, Job]:
            return {
                number: job_of(
                    side,
                    cases[number],
                    with_folders(entries, folders),
                    directory / cases[number].stem,
                    recording_options.map,
                    recording_options.options,
                )
                for number in numbers
            }

        old = _run(jobs("before", trees.before, cases))
        ready = {number: run for number, (_, run) in old.items() if isinstance(run, SideRun)}
        after = jobs("after", trees.after, ready)
        new = _run({number: following(ready[number], job) for number, job in after.items()})
        return {
            number: _row(_title(instances[number]), old[number], new.get(number))
            for number in cases
        }


_Run = tuple[Job, SideRun | CaseError]


def _run(jobs: Mapping[int, Job]) -> dict[int, _Run]:
    runs = run_sides(list(jobs.values()))
    return {number: (jobs[number], run) for number, run in zip(jobs, runs, strict=True)}


def _row(title: str, old: _Run, new: _Run | None) -> Row:
    for pair in (old, new):
        if pair is not None and isinstance(pair[1], CaseError):
            return Row(title, "cannot run", False, False, str(pair[1]))
    assert new is not None
    assert isinstance(old[1], SideRun)
    assert isinstance(new[1], SideRun)
    try:
        report = judge((old[0], new[0]), (old[1], new[1])).report
        if not report.ok:  # again, alone, to find where they part
            report = compare(old[0], new[0]).report
    except CaseError as error:
        return Row(title, "cannot run", False, False, str(error))
    failures = [check for check in report.checks if check.status == "fail"]
    if not title.endswith(")") and _makes_fewer(failures):
        reason = "init by this method alone makes fewer variables than the constructor"
        return Row(title, "not compared", True, False, reason)
    details = [f"{check.name}: {'; '.join(check.details[:2])}" for check in failures]
    return Row(title, report.verdict, report.ok, True, " | ".join(details), report)


def _makes_fewer(failures: Sequence[Check]) -> bool:
    """Whether the Linen side lacks variables, and the NNX side none."""
    lines = [line for check in failures if check.name == "paths" for line in check.details]
    return bool(lines) and all(line.endswith(": only in NNX") for line in lines)


def table(path: Path, rows: Sequence[Row]) -> Iterator[str]:
    """Lines for a person: one per instance, then the totals."""
    width = min(max(len(row.name) for row in rows), 72)
    for row in rows:
        detail = f"  {row.detail}" if row.detail else ""
        yield f"{row.name:{width}}  {row.verdict}{detail}"
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    counts_text = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    yield f"{path}: {len(rows)} recorded modules: {counts_text}"
    if not any(row.has_comparison for row in rows):
        yield f"{path}: nothing was compared"


def as_json(rows: Sequence[Row]) -> str:
    """All rows with their reports."""
    content: list[dict[str, Any]] = [
        {
            "module": row.name,
            "verdict": row.verdict,
            "ok": row.ok,
            "compared": row.has_comparison,
            "detail": row.detail,
            "report": json.loads(row.report.to_json()) if row.report else None,
        }
        for row in rows
    ]
    ok = all(row.ok for row in rows) and any(row.has_comparison for row in rows)
    return json.dumps({"schema": 1, "ok": ok, "modules": content}, indent=1)
