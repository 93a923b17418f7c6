"""One complete decision and the texts it leads to."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from nnx_migrate.constructs import is_linen
from nnx_migrate.edit.data import EditError
from nnx_migrate.edit.rendering import Replacement
from nnx_migrate.rewrite.decide import Decisions
from nnx_migrate.rewrite.imports import (
    ImportConflict,
    is_imported,
    settle_imports,
    used_imports,
)
from nnx_migrate.rewrite.keep import kept_lines
from nnx_migrate.rewrite.loading import Loaded
from nnx_migrate.rewrite.outside import OutsideContext, OutsideResult, Remark, convert_outside
from nnx_migrate.rewrite.outside.data import Doubted
from nnx_migrate.rewrite.outside.factory_sizes import passed_sizes
from nnx_migrate.rewrite.outside.holding import fields_of_modules
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import walk


@dataclass(frozen=True)
class Failure:
    """Why a file's new text cannot be made, and what to do."""

    reason: str
    recipe: str


@dataclass
class Attempt:
    """One complete decision and the texts it leads to."""

    decisions: Decisions
    texts: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, tuple[Remark, ...]] = field(default_factory=dict)
    failed: dict[str, Failure] = field(default_factory=dict)
    kept: dict[str, frozenset[int]] = field(default_factory=dict)  # lines that stay as they are
    own_kept: dict[str, frozenset[int]] = field(default_factory=dict)  # those the user keeps
    edited: dict[str, frozenset[int]] = field(default_factory=dict)  # ids of nodes around classes
    lazily: frozenset[str] = frozenset()  # classes that code around them builds by lazy(Class)
    lazy: dict[str, frozenset[int]] = field(default_factory=dict)  # ids of nodes that say so
    plain: dict[str, frozenset[int]] = field(
        default_factory=dict
    )  # ids of names that both libraries have
    doubts: dict[str, tuple[Doubted, ...]] = field(default_factory=dict)
    placed: set[str] = field(default_factory=set)  # those that are built so somewhere
    inherits: bool = False  # whether classes that stay are made lazy by a base of their own
    checked: set[int] = field(default_factory=set)  # ids of keywords that give those modules
    values: set[str] = field(default_factory=set)  # those with `modules_in` that are used as values
    modules_in: Mapping[str, frozenset[str]] = field(default_factory=dict)


def make_attempt(
    loaded: Loaded,
    sizes: Mapping[str, ClassSizes],
    decisions: Decisions,
    untouched: frozenset[str] = frozenset(),
    frozen: Mapping[str, frozenset[int]] = MappingProxyType({}),
    lazily: frozenset[str] = frozenset(),
) -> Attempt:
    """Render every file that changes by what is decided about the classes.

    ``untouched``: paths of which nothing but classes may change; ``frozen``: lines, by path, where
    code keeps Linen's style; ``lazily``: the classes that it builds by ``lazy(Class)``.
    """
    project = loaded.project
    lazily &= decisions.converted.keys()
    modules_in = fields_of_modules(project, sizes, lazily)
    attempt = Attempt(decisions, lazily=lazily, modules_in=modules_in)
    context = OutsideContext(
        converted=frozenset(decisions.converted),
        new_arguments={name: sizes[name].new_arguments for name in decisions.converted},
        factories=decisions.factories,
        scope_functions=tuple(decisions.scope_functions.values()),
        lazily=lazily,
        modules_in=modules_in,
        passed=passed_sizes(project, sizes, decisions.converted),
        skip=frozenset(id(cls.node) for cls in project.linen.values()),
        kept=frozenset(id(project.linen[name].node) for name in decisions.kept),
    )
    for path, module in loaded.targets.items():
        around = None if path in untouched else context
        _render(project, path, module, around, attempt, frozen.get(path, frozenset()))
    return attempt


def _render(
    project: Project,
    path: str,
    module: Module,
    context: OutsideContext | None,
    attempt: Attempt,
    frozen: frozenset[int],
) -> None:
    classes = [c for c in project.linen.values() if c.module is module]
    converted = {c.name: attempt.decisions.converted.get(c.name) for c in classes}
    outside = OutsideResult({}, frozenset(), ())
    if context is not None:
        outside = convert_outside(project, module, context)
    own = kept_lines(module)
    free = (
        frozenset(_lines_of_builders(project, module, attempt, outside)) if frozen else frozenset()
    )
    kept = own | (frozen - free)
    edits = _without_kept(module, outside.edits, kept)
    # A file that keeps lazy classes keeps their names for functions, too.
    plain = outside.plain if all(converted.values()) else frozenset()
    anywhere = outside.lazy | plain
    edits |= _without_kept(module, {one: outside.edits[one] for one in anywhere}, own)
    attempt.edited[path] = frozenset(edits)
    attempt.lazy[path] = outside.lazy & edits.keys()
    attempt.plain[path] = plain & edits.keys()
    attempt.doubts[path] = outside.doubts
    attempt.values |= outside.values
    attempt.placed |= outside.placed
    attempt.checked |= outside.checked
    attempt.inherits |= outside.inherits
    needed = outside.imports if edits else frozenset()
    attempt.remarks[path] = tuple(one for one in outside.findings if not _touches(one.node, kept))
    attempt.kept[path], attempt.own_kept[path] = kept, own
    for one in converted.values():
        if one is not None:
            edits.update(one.edits)
            needed |= one.imports
    if not edits:
        return
    try:
        made = renderer_of(module, edits).render_module()
        if not outside.edits.keys() <= edits.keys():
            needed = used_imports(made, needed)
        made = settle_imports(
            made,
            module.tree,
            needed,
            module.package,
            lambda name: is_imported(project, module, name),
        )
        text = made.code
        ast.parse(text)
    except ImportConflict as error:
        _fail(attempt, path, Failure(str(error), "then run again"))
        return
    except (EditError, SyntaxError, ValueError) as error:
        reason = f"the new text cannot be made: {error}"
        _fail(attempt, path, Failure(reason, "please report this with the file"))
        return
    if text != module.text:
        attempt.texts[path] = text


def _fail(attempt: Attempt, path: str, failure: Failure) -> None:
    """The file stays as it is: nothing that it does with a class has been edited."""
    attempt.failed[path] = failure
    attempt.edited[path] = attempt.lazy[path] = attempt.plain[path] = frozenset()


def _lines_of_builders(
    project: Project, module: Module, attempt: Attempt, outside: OutsideResult
) -> Iterator[int]:
    """Lines of converted classes, of functions that build for them, and of layers they are given."""
    decisions = attempt.decisions
    whole = {id(one.node) for one in decisions.factories if one.module is module}
    whole |= {key for one in decisions.scope_functions.values() for key in one.edits}
    whole |= {id(project.linen[name].node) for name in decisions.converted}
    for node in walk(module.tree):
        if id(node) in whole or _is_layer(project, module, node, outside):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]


def _is_layer(project: Project, module: Module, node: ast.AST, outside: OutsideResult) -> bool:
    if id(node) not in outside.lazy or not isinstance(node, ast.Name | ast.Attribute):
        return False
    return is_linen(project.resolve(node, Scope(module)))


def _without_kept(
    module: Module, edits: Mapping[int, Replacement], kept: frozenset[int]
) -> dict[int, Replacement]:
    """Edits, those of statements on lines that the user keeps left out."""
    if not kept:
        return dict(edits)
    nodes = (node for node in module.nodes if id(node) in edits)
    return {id(node): edits[id(node)] for node in nodes if not _touches(node, kept)}


def _touches(node: ast.AST, lines: frozenset[int]) -> bool:
    first = getattr(node, "lineno", 0)
    return any(first <= line <= getattr(node, "end_lineno", first) for line in lines)
