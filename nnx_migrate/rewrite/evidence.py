"""The evidence file of a run: joined to the files as read, and what the report says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from nnx_migrate.digests import digest
from nnx_migrate.evidence.read import load
from nnx_migrate.evidence.schema import EvidenceError
from nnx_migrate.model import Finding, Outcome, RewriteResult
from nnx_migrate.rewrite.loading import RewriteInput
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.rewrite.size_results import argument_results, size_results
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.sizes.evidence import ProjectEvidence
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module


def evidence_of(request: RewriteRequest, inputs: RewriteInput) -> ProjectEvidence | None:
    """The request's evidence file, with the hashes of the files it is to be joined to.

    Raises:
        EvidenceError: it cannot be read, or nothing in it is of this project.
    """
    if request.evidence is None:
        return None
    base = request.base or request.root
    hashes = {str(source.path): digest(source.raw) for source in request.context}
    hashes |= {_relative(source.path, base): digest(source.raw) for source in request.files}
    found = ProjectEvidence(load(request.evidence), inputs.project, hashes)
    known = any(found.of(info) for info in inputs.project.linen.values())
    if not known and not any(found.stale):
        names = sorted(one.key.qualname for one in found.evidence.classes)
        raise EvidenceError(
            f"{request.evidence}: expected calls of the classes to rewrite, found only"
            f" {', '.join(names[:3])}{' and others' if len(names) > 3 else ''}; record this code"
        )
    return found


def _relative(path: Path, base: Path) -> str:
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else path.as_posix()


def with_evidence(
    result: RewriteResult,
    evidence: ProjectEvidence | None,
    inputs: RewriteInput,
    sizes: Mapping[str, ClassSizes],
) -> RewriteResult:
    """The result with the source of every size, and the evidence that could not be used."""
    project = inputs.project
    size_arguments = {one.linen: one.size_arguments for one in result.migration_map.classes}
    classes = tuple(
        replace(
            one,
            sizes=size_results(project, project.linen[one.name], sizes),
            arguments=argument_results(
                project.linen[one.name], size_arguments.get(one.name, ()), sizes[one.name], evidence
            ),
        )
        if one.name in sizes
        else one
        for one in result.classes
    )
    stale = () if evidence is None else _stale_findings(evidence, inputs)
    findings = (*result.findings, *stale)
    ordered = sorted(findings, key=lambda f: (f.path, f.line, f.column, f.rule, f.message))
    return replace(result, classes=classes, findings=tuple(ordered))


def _stale_findings(evidence: ProjectEvidence, inputs: RewriteInput) -> Iterator[Finding]:
    """One finding per class whose evidence cannot be used any more."""
    for info, file in evidence.stale:
        if info.module.path in inputs.targets:
            text = (
                f"stale evidence: {file} is not what it was when {info.node.name} was recorded;"
                " its sizes are not used: record again"
            )
            line, column = _position(info.module, info)
            yield Finding("evidence", info.module.path, line, column, Outcome.REFUSED, text)


def _position(module: Module, cls: ClassInfo) -> tuple[int, int]:
    return module.lines.position(module.lines.span(cls.node).start)
