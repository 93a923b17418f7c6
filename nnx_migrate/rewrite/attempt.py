"""One complete decision and the texts it leads to."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes import ClassRefusal
from nnx_migrate.rewrite.decide import Decisions, decide
from nnx_migrate.rewrite.imports import ImportConflict, fix_imports
from nnx_migrate.rewrite.keep import kept_lines
from nnx_migrate.rewrite.loading import Loaded
from nnx_migrate.rewrite.outside import OutsideContext, Remark, convert_outside
from nnx_migrate.rewrite.render import Renderer, Unrenderable
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.source.project import Module, Project


@dataclass
class Attempt:
    """One complete decision and the texts it leads to."""

    decisions: Decisions
    texts: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, tuple[Remark, ...]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # path -> reason


def make_attempt(
    loaded: Loaded,
    sizes: Mapping[str, ClassSizes],
    request: RewriteRequest,
    barred: Mapping[str, ClassRefusal],
) -> Attempt:
    """Decide about every class and render every file that changes."""
    project = loaded.project
    targets = frozenset(id(module) for module in loaded.targets.values())
    decisions = decide(project, sizes, targets, request.select, request.exclude, barred)
    attempt = Attempt(decisions)
    context = OutsideContext(
        converted=frozenset(decisions.converted),
        new_arguments={name: sizes[name].new_arguments for name in decisions.converted},
        skip=frozenset(id(cls.node) for cls in project.linen.values()),
    )
    for path, module in loaded.targets.items():
        _render(project, path, module, context, attempt)
    return attempt


def _render(
    project: Project, path: str, module: Module, context: OutsideContext, attempt: Attempt
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
