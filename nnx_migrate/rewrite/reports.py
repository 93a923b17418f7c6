"""JSON of one rewriting run: the report and the migration map, both ``"schema": 1``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from nnx_migrate.digests import text_digest
from nnx_migrate.model import (
    ClassResult,
    Confidence,
    FileResult,
    FileStatus,
    Form,
    MappedFile,
    MigrationMap,
    Outcome,
    RewriteResult,
    Tally,
)

SCHEMA = 1


def report(result: RewriteResult) -> dict[str, Any]:
    """The report as JSON values; absent ``error``, ``reason`` and ``cut_by`` are left out."""
    return {
        "schema": SCHEMA,
        "files": [_file(file) for file in result.files],
        "classes": [_class(one) for one in result.classes],
        "references": _tally(result.references),
        "call_sites": _tally(result.call_sites),
        "findings": [
            {**asdict(finding), "outcome": finding.outcome.value} for finding in result.findings
        ],
    }


def migration_map(content: MigrationMap) -> dict[str, Any]:
    """The migration map as JSON values."""
    return {"schema": SCHEMA, **asdict(content)}


def with_hashes(
    result: RewriteResult, before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> MigrationMap:
    """The migration map with the files it is of; ``before`` and ``after`` are contents by path."""
    mapped = {one.linen for one in result.migration_map.classes}
    classes: dict[str, list[str]] = {}
    for one in result.classes:
        if one.name in mapped and one.path in after and one.outcome is Outcome.REWRITTEN:
            classes.setdefault(one.path, []).append(one.name)
    files = tuple(
        MappedFile(path, tuple(names), text_digest(before[path]), text_digest(after[path]))
        for path, names in classes.items()
    )
    return replace(result.migration_map, files=files)


def _file(file: FileResult) -> dict[str, Any]:
    error = {"error": file.error} if file.error is not None else {}
    return {"path": file.path, "status": file.status.value, **error}


def _class(one: ClassResult) -> dict[str, Any]:
    content: dict[str, Any] = {
        "name": one.name,
        "path": one.path,
        "line": one.line,
        "outcome": one.outcome.value,
        "confidence": one.confidence.value,
        "new_arguments": list(one.new_arguments),
    }
    if one.form is not None:
        content["form"] = one.form.value
    if one.arguments:
        content["arguments"] = [asdict(argument) for argument in one.arguments]
    if one.sizes:
        content["sizes"] = [asdict(size) for size in one.sizes]
    if one.reason is not None:
        content["reason"] = one.reason
    if one.reason_place is not None:
        content["reason_place"] = one.reason_place
    if one.cut_by is not None:
        content["cut_by"] = one.cut_by
    return content


def _tally(tally: Tally) -> dict[str, int]:
    return asdict(tally)


def with_failures(result: RewriteResult, failures: Mapping[str, str]) -> RewriteResult:
    """The result when these files (path -> reason) could not be read or written.

    A class that was rewritten in a file that was not written is refused with that reason; the
    counts of references stay those of the decision.
    """
    known = {file.path for file in result.files}
    files = [
        FileResult(file.path, FileStatus.FAILED, error=failures[file.path])
        if file.path in failures
        else file
        for file in result.files
    ]
    files += [
        FileResult(path, FileStatus.FAILED, error=reason)
        for path, reason in failures.items()
        if path not in known
    ]
    classes = tuple(
        replace(
            one,
            outcome=Outcome.REFUSED,
            confidence=Confidence.EXACT,
            form=None,
            reason=f"its file failed: {failures[one.path]}",
        )
        if one.path in failures and one.outcome is Outcome.REWRITTEN
        else one
        for one in result.classes
    )
    return replace(result, files=tuple(sorted(files, key=lambda file: file.path)), classes=classes)


def lazy_classes(result: RewriteResult) -> list[ClassResult]:
    """Classes that run on NNX and are not written as people write it."""
    return [one for one in result.classes if one.form is Form.LAZY]


def needs_a_person(result: RewriteResult) -> bool:
    """Whether anything was refused or failed."""
    return (
        any(file.status is FileStatus.FAILED for file in result.files)
        or any(one.outcome is Outcome.REFUSED for one in result.classes)
        or any(finding.outcome is Outcome.REFUSED for finding in result.findings)
        or result.references.refused > 0
        or result.call_sites.refused > 0
    )
