"""``nnx-migrate rewrite``: read, decide, write, report."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from nnx_migrate import __version__
from nnx_migrate.cli import printing
from nnx_migrate.cli.arguments import RewriteOptions, UsageError
from nnx_migrate.cli.git import dirty_files
from nnx_migrate.cli.usage import check
from nnx_migrate.evidence.schema import EvidenceError
from nnx_migrate.model import FileStatus, RewriteResult
from nnx_migrate.rewrite import cache, reports, writer
from nnx_migrate.rewrite import journal as journals
from nnx_migrate.rewrite.journal import Journal, JournalError
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.rewrite.writer import Busy, PlannedWrite
from nnx_migrate.source.discovery import Discovery, TooLarge, discover, project_files
from nnx_migrate.source.files import SourceText, decode, find_root, read
from nnx_migrate.source.settings import Settings, SettingsError, read_settings

Engine = Callable[[RewriteRequest], RewriteResult]


@dataclass
class _Run:
    """What one run has read and what has failed so far."""

    options: RewriteOptions
    root: Path
    discovery: Discovery
    settings: Settings
    journal: Journal | None = None
    texts: dict[str, SourceText] = field(default_factory=dict)  # by path in the report
    interrupted_files: dict[str, bytes] = field(default_factory=dict)  # as that run left them
    failures: dict[str, str] = field(default_factory=dict)

    def name(self, path: Path) -> str:
        """The path in the report."""
        inside = path.is_relative_to(self.discovery.base)
        return path.relative_to(self.discovery.base).as_posix() if inside else str(path)

    @property
    def arguments(self) -> tuple[str, ...]:
        """What decides the result of an in-place run; an interrupted one must match it."""
        options = self.options
        return (
            __version__,
            *(str(path.resolve()) for path in options.paths),
            *(f"--select={glob}" for glob in options.select),
            *(f"--exclude={glob}" for glob in options.exclude),
            *([f"--evidence={options.evidence.resolve()}"] if options.evidence else []),
            f"--form={options.form}",
            f"--loop={options.loop}",
            f"--names={options.names}",
        )


def rewrite(options: RewriteOptions, engine: Engine | None = None) -> int:
    """Run the command.

    Raises:
        UsageError: nothing was done.
    """
    with _without_gc():
        return _rewrite(options, engine)


@contextmanager
def _without_gc() -> Iterator[None]:
    """No garbage collection: trees are many objects, and what is let go of them is gone at once.

    Looking through them took a tenth of the time; what only it would find is a fifth of the memory.
    """
    had_gc = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if had_gc:
            gc.enable()


def _rewrite(options: RewriteOptions, engine: Engine | None) -> int:
    check(options)
    found = discover(options.paths, options.select, options.exclude)
    root = find_root(found.base, options.root)
    run = _Run(options, root, found, _settings(root))
    run.failures = {run.name(one.path): one.reason for one in found.failures}
    with printing.working("Reading..."):
        _read(run)
    if not run.texts:
        return _nothing_to_read(run)
    with printing.working(f"Rewriting {len(run.texts)} files..."):
        try:
            result = (engine or _engine(options))(_request(run))
        except EvidenceError as error:
            raise UsageError(f"--evidence {error}") from error
        except SettingsError as error:
            raise UsageError(str(error)) from error
    after = _new_bytes(run, result)
    _write(run, after)
    result = reports.with_failures(result, run.failures)
    _store(options.report, reports.report(result))
    before = {name: run.texts[name].raw for name in after}
    _store(options.map, reports.migration_map(reports.with_hashes(result, before, after)))
    _print(run, result)
    return _exit_code(options, result)


def _engine(options: RewriteOptions) -> Engine:
    def decide(request: RewriteRequest) -> RewriteResult:
        from nnx_migrate.rewrite import forms  # it takes long to import

        return forms.rewrite_in(request, options.form, options.loop, options.names)

    place = None if options.no_cache else cache.folder()
    form = f"{options.form} {options.loop} {options.names}"
    return partial(cache.through, place, form=form, engine=decide) if place else decide


def _settings(root: Path) -> Settings:
    try:
        return read_settings(root)
    except SettingsError as error:
        raise UsageError(str(error)) from error


def _read(run: _Run) -> None:
    """Read the files to rewrite; a file that an interrupted run replaced is read as it was."""
    in_place = run.options.in_place
    try:
        run.journal = journals.load(run.root)
        pending = journals.unfinished_journal(run.journal, run.arguments) if in_place else None
    except JournalError as error:
        raise UsageError(str(error)) from error
    for path in run.discovery.files:
        name = run.name(path)
        content = read(path)
        if isinstance(content, SourceText):
            on_disk = content.raw
            original = _as_found(run, pending, path, on_disk)
            if original != on_disk:
                run.interrupted_files[name] = on_disk
                content = decode(path, original)
        if isinstance(content, SourceText):
            run.texts[name] = content
        else:
            run.failures[name] = content.reason


def _as_found(run: _Run, pending: Journal | None, path: Path, on_disk: bytes) -> bytes:
    name = journals.name_in(run.root, path)
    try:
        return journals.original_bytes(run.root, pending, name, on_disk)
    except JournalError as error:
        raise UsageError(str(error)) from error


def _nothing_to_read(run: _Run) -> int:
    """Say why there is nothing to do, as errors."""
    for name, reason in run.failures.items():
        printing.error(f"{name}: {reason}")
    if not run.failures:
        paths = " ".join(map(str, run.options.paths))
        why = "is selected" if run.discovery.left_out else "was found"
        printing.error(f"{paths}: no Python file {why}")
    return 2


def _request(run: _Run) -> RewriteRequest:
    """The files to rewrite, and the rest of the project to read.

    A read-only file is not rewritten, so the engine must see its classes as staying Linen.
    """
    read_only = set()
    if run.options.in_place:
        for name, source in run.texts.items():
            reason = None
            if "flax" in source.text:
                reason = writer.read_only(source.path, writer.EXCLUDE)
            if reason is not None:
                read_only.add(name)
                run.failures[name] = reason
    files = tuple(source for name, source in run.texts.items() if name not in read_only)
    read_already = {source.path for source in run.texts.values()}
    try:
        others = project_files(run.root, run.options.root is not None, run.discovery)
    except TooLarge as error:
        raise UsageError(str(error)) from error
    around = (read(path) for path in others if path not in read_already)
    context = [source for source in around if isinstance(source, SourceText)]
    context += [run.texts[name] for name in sorted(read_only)]
    return RewriteRequest(
        root=run.root,
        files=files,
        context=tuple(context),
        select=run.discovery.class_select,
        exclude=run.discovery.class_exclude,
        jobs=run.options.jobs,
        base=run.discovery.base,
        evidence=run.options.evidence,
        settings=run.settings,
    )


def _new_bytes(run: _Run, result: RewriteResult) -> dict[str, bytes]:
    """The new bytes of every file that changes."""
    after: dict[str, bytes] = {}
    for file in result.files:
        if file.status is not FileStatus.REWRITTEN or file.code is None:
            continue
        source = run.texts[file.path]
        try:
            after[file.path] = source.encode(file.code)
        except UnicodeEncodeError as error:
            run.failures[file.path] = f"its encoding {source.encoding} cannot hold {error.object!r}"
    return after


def _write(run: _Run, after: Mapping[str, bytes]) -> None:
    try:
        if run.options.output is not None:
            _write_copy(run, run.options.output.resolve(), after)
        elif run.options.in_place:
            _write_in_place(run, after)
    except (Busy, JournalError) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        reason = error.strerror if isinstance(error, FileExistsError) else writer.reason_of(error)
        raise UsageError(f"{error.filename or run.root}: {reason}") from error


def _write_copy(run: _Run, output: Path, after: Mapping[str, bytes]) -> None:
    trees = [path.resolve() for path in run.options.paths if path.exists()]
    contents = {run.texts[name].path: content for name, content in after.items()}
    writer.write_copy(run.discovery.base, trees, output, contents)


def _write_in_place(run: _Run, after: Mapping[str, bytes]) -> None:
    before = {name: run.interrupted_files.get(name) or run.texts[name].raw for name in after}
    plans = [
        PlannedWrite(run.texts[name].path, before[name], content)
        for name, content in after.items()
        if content != before[name]
    ]
    if not run.options.allow_dirty:
        _refuse_dirty(run, plans)
    for failure in writer.write_in_place(run.root, plans, run.arguments):
        run.failures[run.name(failure.path)] = failure.reason


def _refuse_dirty(run: _Run, plans: list[PlannedWrite]) -> None:
    dirty = dirty_files(run.root, [plan.path for plan in plans])
    foreign = [
        plan.path
        for plan in plans
        if plan.path in dirty
        and not journals.is_own(run.journal, journals.name_in(run.root, plan.path), plan.before)
    ]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise UsageError(
            f"{run.name(foreign[0])}{more}: uncommitted changes, nothing was written; "
            "commit them, or pass --allow-dirty"
        )


def _store(file: Path | None, content: dict[str, Any]) -> None:
    if file is None:
        return
    try:
        writer.write_file(file.resolve(), (json.dumps(content, indent=1) + "\n").encode())
    except OSError as error:
        raise UsageError(f"{file}: {writer.reason_of(error)}") from error


def _print(run: _Run, result: RewriteResult) -> None:
    printing.file_errors(result)
    would = not run.options.in_place and run.options.output is None
    rewritten_files = [file for file in result.files if file.status is FileStatus.REWRITTEN]
    if run.options.diff:
        for file in rewritten_files:
            before = run.texts[file.path].text
            sys.stdout.write(printing.diff(file.path, before, file.code or ""))
        return
    if run.options.check:
        for file in rewritten_files:
            sys.stdout.write(f"would rewrite {file.path}\n")
    printing.summary(result, would=would, tell_lazy=run.options.form == "explicit")


def _exit_code(options: RewriteOptions, result: RewriteResult) -> int:
    statuses = {file.status for file in result.files}
    if statuses == {FileStatus.FAILED}:
        return 2
    would_change = options.check and FileStatus.REWRITTEN in statuses
    stays_lazy = options.form == "explicit" and bool(reports.lazy_classes(result))
    return 1 if would_change or stays_lazy or reports.needs_a_person(result) else 0
