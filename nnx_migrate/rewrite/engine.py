"""The rewriting engine: from a request to what every file, class and reference becomes.

Nothing is written here. The books are settled by the ledger, which shares no code with the rules; a
class whose books do not balance is refused and the run is decided again without it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
from nnx_migrate.rewrite.classes import ClassRefusal
from nnx_migrate.rewrite.decide import Decisions, decide
from nnx_migrate.rewrite.imports import ImportConflict, fix_imports
from nnx_migrate.rewrite.keep import kept_lines
from nnx_migrate.rewrite.loading import Loaded, load
from nnx_migrate.rewrite.outside import OutsideContext, Remark, convert_outside
from nnx_migrate.rewrite.render import Renderer, Unrenderable
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.sizes import ClassSizes, analyse
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project

_ATTEMPTS = 6  # decisions without the classes that earlier attempts could not finish


class EngineError(Exception):
    """The run cannot be finished honestly."""


@dataclass
class _Attempt:
    """One complete decision and the texts it leads to."""

    decisions: Decisions
    texts: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, tuple[Remark, ...]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # path -> reason


def rewrite_project(request: RewriteRequest) -> RewriteResult:
    """Decide and render everything a request asks for.

    Raises:
        EngineError: the ledger does not balance whatever is refused.
    """
    loaded = load(request)
    changing = {id(module) for module in loaded.targets.values()}
    linen = loaded.project.linen.items()
    sizes = analyse(loaded.project, [name for name, c in linen if id(c.module) in changing])
    sources = _sources(loaded.project, {})
    paths = frozenset(loaded.targets)
    before = ledger.count(sources, paths)
    barred: dict[str, ClassRefusal] = {}
    for _ in range(_ATTEMPTS):
        attempt = _attempt(loaded, sizes, request, barred)
        after = ledger.count(_sources(loaded.project, attempt.texts), paths)
        books = ledger.settle(before, after, *_claims(loaded, attempt))
        unfinished = _unfinished(loaded, attempt, books)
        if not unfinished:
            return _result(loaded, attempt, sizes, books)
        barred = {**barred, **unfinished}
    raise EngineError(f"the ledger does not balance: {books.violations[:3]}; please report this")


def rewrite_text(text: str, name: str = "module") -> tuple[str, RewriteResult]:
    """Rewrite one file that stands alone; its new text (the same when nothing changes)."""
    from pathlib import Path

    from nnx_migrate.source.files import SourceText

    root = Path("/")
    source = SourceText(root / f"{name}.py", text.encode(), text, "utf-8", bom=False)
    result = rewrite_project(RewriteRequest(root, (source,), base=root))
    code = result.files[0].code if result.files else None
    return code if code is not None else text, result


def _sources(project: Project, texts: Mapping[str, str]) -> list[ledger.Source]:
    return [
        ledger.Source(module.path, module.name, texts.get(module.path, module.text))
        for module in project.modules.values()
    ]


# ---- one attempt


def _attempt(
    loaded: Loaded,
    sizes: Mapping[str, ClassSizes],
    request: RewriteRequest,
    barred: Mapping[str, ClassRefusal],
) -> _Attempt:
    project = loaded.project
    targets = frozenset(id(module) for module in loaded.targets.values())
    decisions = decide(project, sizes, targets, request.select, request.exclude, barred)
    attempt = _Attempt(decisions)
    context = OutsideContext(
        converted=frozenset(decisions.converted),
        new_arguments={name: sizes[name].new_arguments for name in decisions.converted},
        skip=frozenset(id(cls.node) for cls in project.linen.values()),
    )
    for path, module in loaded.targets.items():
        _render(project, path, module, context, attempt)
    return attempt


def _render(
    project: Project, path: str, module: Module, context: OutsideContext, attempt: _Attempt
) -> None:
    classes = [c for c in project.linen.values() if c.module is module]
    converted = {c.name: attempt.decisions.converted.get(c.name) for c in classes}
    outside = convert_outside(project, module, context)
    kept = kept_lines(module)
    edits = {key: value for key, value in outside.edits.items() if not _is_on(module, key, kept)}
    needed = outside.imports if edits else frozenset()
    attempt.remarks[path] = outside.findings
    for one in converted.values():
        if one is not None:
            edits.update(one.edits)
            needed |= one.imports
    if not edits:
        return
    try:
        text = Renderer(project, module, edits).render_module()
        text = fix_imports(
            text, needed, module.package, lambda name: _exports(project, module, name)
        )
        ast.parse(text)
    except (Unrenderable, ImportConflict, SyntaxError, ValueError) as error:
        attempt.failed[path] = f"the new text cannot be made: {error}"
        return
    if text != module.text:
        attempt.texts[path] = text


def _is_on(module: Module, key: int, lines: frozenset[int]) -> bool:
    if not lines:
        return False
    return any(id(n) == key and getattr(n, "lineno", 0) in lines for n in ast.walk(module.tree))


def _exports(project: Project, module: Module, name: str) -> bool:
    """Whether another module takes ``name`` from this one."""
    return any(
        f"{module.name}.{name}" == getattr(binding, "target", None)
        for other in project.modules.values()
        if other is not module
        for binding in other.table.values()
    )


# ---- the books


def _claims(
    loaded: Loaded, attempt: _Attempt
) -> tuple[
    dict[str, Outcome], dict[tuple[str, int, int], Outcome], dict[tuple[str, int, int], Outcome]
]:
    classes = {
        name: _class_outcome(attempt, name)
        for name in loaded.project.linen
        if name not in attempt.decisions.outside
    }
    places: dict[tuple[str, int, int], Outcome] = {}
    calls: dict[tuple[str, int, int], Outcome] = {}
    for path, remarks in attempt.remarks.items():
        module = loaded.targets[path]
        for remark in remarks:
            if remark.outcome is Outcome.REWRITTEN:
                continue  # the ledger finds that out itself
            claims = places if remark.kind == "reference" else calls
            if remark.kind != "constructor":
                claims[(path, *_position(module, remark.node))] = remark.outcome
    return classes, places, calls


def _class_outcome(attempt: _Attempt, name: str) -> Outcome:
    if name in attempt.decisions.converted:
        return Outcome.REWRITTEN
    if name in attempt.decisions.kept:
        return Outcome.KEPT
    return Outcome.REFUSED


def _position(module: Module, node: ast.AST) -> tuple[int, int]:
    return module.lines.position(module.lines.span(node).start)


def _unfinished(loaded: Loaded, attempt: _Attempt, books: ledger.Ledger) -> dict[str, ClassRefusal]:
    """Classes to refuse because their file or their books went wrong."""
    bad: dict[str, ClassRefusal] = {}
    for cls in loaded.project.linen.values():
        if cls.name not in attempt.decisions.converted:
            continue
        reason = attempt.failed.get(cls.module.path)
        if reason is None:
            reason = next((v for v in books.violations if cls.name in v), None)
        if reason is not None:
            bad[cls.name] = ClassRefusal(
                cls.node, reason, "please report this with the class", "ledger"
            )
    if books.violations and not bad:
        named = books.violations
        for cls in loaded.project.linen.values():
            if cls.name in attempt.decisions.converted and any(cls.module.path in v for v in named):
                bad[cls.name] = ClassRefusal(cls.node, named[0], "please report this", "ledger")
        if not bad:
            raise EngineError(f"the ledger does not balance: {named[0]}; please report this")
    return bad


# ---- the result


def _result(
    loaded: Loaded, attempt: _Attempt, sizes: Mapping[str, ClassSizes], books: ledger.Ledger
) -> RewriteResult:
    files = [_file(path, attempt) for path in loaded.targets]
    files += [FileResult(path, FileStatus.UNCHANGED) for path in loaded.unchanged]
    files += loaded.failures
    decisions = attempt.decisions
    classes = tuple(
        _class_result(cls, attempt, sizes)
        for name, cls in loaded.project.linen.items()
        if name not in decisions.outside
    )
    maps = tuple(decisions.converted[name].class_map for name in sorted(decisions.converted))
    return RewriteResult(
        files=tuple(sorted(files, key=lambda one: one.path)),
        classes=tuple(sorted(classes, key=lambda one: (one.path, one.line))),
        findings=_findings(loaded, attempt, books),
        references=books.references,
        call_sites=books.call_sites,
        migration_map=MigrationMap(maps),
    )


def _file(path: str, attempt: _Attempt) -> FileResult:
    if path in attempt.failed:
        return FileResult(path, FileStatus.FAILED, error=attempt.failed[path])
    if path in attempt.texts:
        return FileResult(path, FileStatus.REWRITTEN, attempt.texts[path])
    return FileResult(path, FileStatus.UNCHANGED)


def _class_result(
    cls: ClassInfo, attempt: _Attempt, sizes: Mapping[str, ClassSizes]
) -> ClassResult:
    decisions, name = attempt.decisions, cls.name
    result = ClassResult(name, cls.module.path, cls.node.lineno, _class_outcome(attempt, name))
    if name in decisions.converted:
        made = decisions.converted[name]
        review = bool(made.review) or bool(sizes[name].review)
        arguments = tuple(one.name for one in made.new_arguments)
        confidence = Confidence.REVIEW if review else made.confidence
        return replace(result, confidence=confidence, new_arguments=arguments)
    if name in decisions.refused:
        return replace(result, reason=decisions.refused[name].reason)
    if name in decisions.cuts:
        one = decisions.cuts[name]
        return replace(result, reason=one.reason, cut_by=_origin(decisions, name))
    return replace(result, reason="kept by a comment or an option")


def _origin(decisions: Decisions, name: str) -> str:
    """The class that a chain of cuts starts from."""
    seen = {name}
    while name in decisions.cuts and decisions.cuts[name].by not in seen:
        name = decisions.cuts[name].by
        seen.add(name)
    return name


def _findings(loaded: Loaded, attempt: _Attempt, books: ledger.Ledger) -> tuple[Finding, ...]:
    found: list[Finding] = []
    for name, refusal in attempt.decisions.refused.items():
        module = loaded.project.linen[name].module
        message = f"{refusal.reason}; {refusal.recipe}"
        found.append(_finding(module, refusal.node, refusal.rule, Outcome.REFUSED, message))
    for name, one in attempt.decisions.cuts.items():
        cls = loaded.project.linen[name]
        message = f"{one.reason}; convert {_origin(attempt.decisions, name)} first"
        found.append(_finding(cls.module, cls.node, "cut", Outcome.REFUSED, message))
    for name, made in attempt.decisions.converted.items():
        module = loaded.project.linen[name].module
        for node, message in (*made.review, *made.notes):
            found.append(_finding(module, node, "review", Outcome.REWRITTEN, message))
    claimed = {(f.path, f.line, f.column) for f in found}
    for path, remarks in attempt.remarks.items():
        module = loaded.targets[path]
        for remark in remarks:
            one_finding = _finding(module, remark.node, remark.rule, remark.outcome, remark.message)
            found.append(one_finding)
            claimed.add((one_finding.path, one_finding.line, one_finding.column))
    found += _unclaimed(books, claimed)
    return tuple(sorted(set(found), key=lambda f: (f.path, f.line, f.column, f.rule, f.message)))


def _unclaimed(books: ledger.Ledger, claimed: set[tuple[str, int, int]]) -> list[Finding]:
    """Places outside classes that stay Linen and that nobody has spoken of."""
    entries = [*books.reference_entries, *books.call_site_entries, *books.handle_entries]
    return [
        Finding(
            "stale",
            entry.place.path,
            entry.place.line,
            entry.place.column,
            Outcome.REFUSED,
            f"{entry.place.symbol} stays as it is; it may need a change by hand",
        )
        for entry in entries
        if entry.outcome is Outcome.REFUSED
        and not entry.claimed
        and (entry.place.path, entry.place.line, entry.place.column) not in claimed
    ]


def _finding(module: Module, node: ast.AST, rule: str, outcome: Outcome, message: str) -> Finding:
    line, column = _position(module, node) if hasattr(node, "lineno") else (1, 1)
    return Finding(rule, module.path, line, column, outcome, message)
