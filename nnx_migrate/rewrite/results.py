"""What a finished attempt says about every file, class and place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace

from nnx_migrate import ledger
from nnx_migrate.model import (
    ClassResult,
    Confidence,
    FileResult,
    FileStatus,
    Finding,
    MigrationMap,
    Outcome,
    RewriteResult,
)
from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.decide import Decisions
from nnx_migrate.rewrite.loading import RewriteInput
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import walk


def result_of(
    inputs: RewriteInput, attempt: Attempt, sizes: Mapping[str, ClassSizes], books: ledger.Ledger
) -> RewriteResult:
    """Everything the run decided, in the order of paths and lines."""
    files = [_file(path, attempt) for path in inputs.targets]
    files += [FileResult(path, FileStatus.UNCHANGED) for path in inputs.unchanged_files]
    files += inputs.failures
    decisions = attempt.decisions
    classes = tuple(
        _class_result(cls, attempt, sizes)
        for name, cls in inputs.project.linen.items()
        if name not in decisions.outside
    )
    maps = tuple(decisions.conversions[name].class_map for name in sorted(decisions.conversions))
    return RewriteResult(
        files=tuple(sorted(files, key=lambda one: one.path)),
        classes=tuple(sorted(classes, key=lambda one: (one.path, one.line))),
        findings=_findings(inputs, attempt),
        references=books.references,
        call_sites=books.call_sites,
        migration_map=MigrationMap(maps),
    )


def _file(path: str, attempt: Attempt) -> FileResult:
    if path in attempt.failures:
        return FileResult(path, FileStatus.FAILED, error=attempt.failures[path].reason)
    if path in attempt.texts:
        return FileResult(path, FileStatus.REWRITTEN, attempt.texts[path])
    return FileResult(path, FileStatus.UNCHANGED)


def _class_result(cls: ClassInfo, attempt: Attempt, sizes: Mapping[str, ClassSizes]) -> ClassResult:
    decisions, name = attempt.decisions, cls.name
    outcome = class_outcome(attempt, name)
    result = ClassResult(cls.qualname, cls.module.path, cls.node.lineno, outcome)
    if name in decisions.conversions:
        made = decisions.conversions[name]
        review = made.review or sizes[name].review
        arguments = tuple(one.name for one in made.new_arguments)
        confidence = Confidence.REVIEW if review else made.confidence
        return replace(result, confidence=confidence, new_arguments=arguments)
    if name in decisions.refusals:
        refusal = decisions.refusals[name]
        place = _reason_place(cls, refusal.node)
        return replace(result, reason=refusal.reason, reason_place=place)
    if name in decisions.cuts:
        one = decisions.cuts[name]
        return replace(result, reason=one.reason, cut_by=_origin(decisions, name))
    return replace(result, reason="kept by a comment or an option")


def _reason_place(cls: ClassInfo, node: ast.AST) -> str | None:
    line = getattr(node, "lineno", cls.node.lineno)
    if line == cls.node.lineno:
        return None
    home = _own_home(cls, node)
    return f"{home.path}:{line}" if home is not None else None


def _origin(decisions: Decisions, name: str) -> str:
    """The class that a chain of cuts starts from."""
    visited = {name}
    while name in decisions.cuts and decisions.cuts[name].by not in visited:
        name = decisions.cuts[name].by
        visited.add(name)
    return name


def _findings(inputs: RewriteInput, attempt: Attempt) -> tuple[Finding, ...]:
    found: list[Finding] = []
    for name, refusal in attempt.decisions.refusals.items():
        module = _home(inputs.project, inputs.project.linen[name], refusal.node)
        message = f"{refusal.reason}; {refusal.recipe}"
        outcome = class_outcome(attempt, name)
        found.append(_finding(module, refusal.node, refusal.rule, outcome, message))
    for name, one in attempt.decisions.cuts.items():
        cls = inputs.project.linen[name]
        message = f"{one.reason}; convert {_origin(attempt.decisions, name)} first"
        outcome = class_outcome(attempt, name)
        found.append(_finding(cls.module, cls.node, "cut", outcome, message))
    for name, made in attempt.decisions.conversions.items():
        cls = inputs.project.linen[name]
        for node, message in (*made.review, *made.notes):
            found.append(
                _finding(
                    _home(inputs.project, cls, node), node, "review", Outcome.REWRITTEN, message
                )
            )
    for path, remarks in attempt.remarks.items():
        module = inputs.targets[path]
        found += [_finding(module, one.node, one.rule, one.outcome, one.message) for one in remarks]
    return in_order(found)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, as they stand in the files."""
    return tuple(sorted(set(findings), key=lambda f: (f.path, f.line, f.column, f.rule, f.message)))


def _own_home(cls: ClassInfo, node: ast.AST) -> Module | None:
    """The module of the class, or of the base, in whose text a node stands."""
    owners = (owner for owner in cls.mro if any(one is node for one in walk(owner.node)))
    return next((owner.module for owner in owners), None)


def _home(project: Project, cls: ClassInfo, node: ast.AST) -> Module:
    """The module whose text holds what a class runs: a method that it inherits, a function it calls."""
    own = _own_home(cls, node)
    if own is not None:
        return own
    modules = (one for one in project.modules.values() if any(node is n for n in one.nodes))
    return next(modules, cls.module)


def _finding(module: Module, node: ast.AST, rule: str, outcome: Outcome, message: str) -> Finding:
    line, column = position(module, node) if hasattr(node, "lineno") else (1, 1)
    return Finding(rule, module.path, line, column, outcome, message)


def class_outcome(attempt: Attempt, name: str) -> Outcome:
    """What became of a class of the files to rewrite."""
    if name in attempt.decisions.conversions:
        return Outcome.REWRITTEN
    if name in attempt.decisions.keep_classes:
        return Outcome.KEPT
    return Outcome.REFUSED


def position(module: Module, node: ast.AST) -> tuple[int, int]:
    """Line and column of a node, both from 1, in characters."""
    return module.lines.position(module.lines.span(node).start)


def staying_names(project: Project, decisions: Decisions) -> frozenset[tuple[str, int, int]]:
    """Where explicit classes name Linen for the sake of lazy submodules, by path, line and column."""
    return frozenset(
        (project.linen[name].module.path, *position(project.linen[name].module, node))
        for name, made in decisions.conversions.items()
        for node in made.staying
        if isinstance(node, ast.Name | ast.Attribute)
    )
