"""One complete decision and the texts it leads to."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nnx_migrate.edit.data import EditError
from nnx_migrate.edit.rendering import GONE, Made, Renderer, Replacement
from nnx_migrate.edit.statements import TAKEN
from nnx_migrate.rewrite.classes.checks.lazy_module_fields import LazyModuleFields
from nnx_migrate.rewrite.decide import Decisions
from nnx_migrate.rewrite.imports import (
    ImportConflict,
    is_imported,
    settle_imports,
    used_imports,
)
from nnx_migrate.rewrite.keep import kept_lines
from nnx_migrate.rewrite.loading import RewriteInput
from nnx_migrate.rewrite.outside import OutsideContext, OutsideResult, Remark, convert_outside
from nnx_migrate.rewrite.outside.data import DoubtfulPlace
from nnx_migrate.rewrite.outside.factories import passed_sizes
from nnx_migrate.rewrite.outside.holding import fields_of_modules, open_fields
from nnx_migrate.rewrite.outside.readers import owned_statements
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.rewrite.star_imports import exported_imports, means_other
from nnx_migrate.rewrite.workers import Team
from nnx_migrate.source.project import Module, Project


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
    failures: dict[str, Failure] = field(default_factory=dict)
    keep_lines: dict[str, frozenset[int]] = field(default_factory=dict)  # lines that the user keeps
    # Ids of nodes around classes
    edited_nodes: dict[str, frozenset[int]] = field(default_factory=dict)
    lazy: dict[str, frozenset[int]] = field(default_factory=dict)  # ids of nodes with lazy(Class)
    explicit: dict[str, frozenset[int]] = field(default_factory=dict)  # of those with the class
    doubts: dict[str, tuple[DoubtfulPlace, ...]] = field(default_factory=dict)
    mentions: set[str] = field(default_factory=set)  # those that are built so somewhere
    taking: set[str] = field(default_factory=set)  # of those that are given modules
    inherits: bool = False  # whether classes that stay are made lazy by a base of their own
    values: set[str] = field(default_factory=set)  # lazy classes that are used as values
    modules_in: Mapping[str, frozenset[str]] = field(default_factory=dict)
    open_in: Mapping[str, frozenset[str]] = field(default_factory=dict)
    module_fields: LazyModuleFields | None = None

    def add(self, part: Attempt) -> None:
        """Take in what comes of another file."""
        self.texts |= part.texts
        self.remarks |= part.remarks
        self.failures |= part.failures
        self.keep_lines |= part.keep_lines
        self.edited_nodes |= part.edited_nodes
        self.lazy |= part.lazy
        self.explicit |= part.explicit
        self.doubts |= part.doubts
        self.mentions |= part.mentions
        self.taking |= part.taking
        self.inherits |= part.inherits
        self.values |= part.values


@dataclass(frozen=True)
class _FileText:
    """The new text of a file, and what led to it.

    Attributes:
        import_needs: the imports that the edits need, whether none of those was left out, and the names
            that other files still take by a star.
    """

    edits: Mapping[int, Made]
    import_needs: tuple[frozenset[str], bool, frozenset[str]]
    text: str


Memory = dict[str, _FileText]  # by path


def make_attempt(
    inputs: RewriteInput,
    decisions: Decisions,
    fixed_paths: frozenset[str] = frozenset(),
    memory: Memory | None = None,
    team: Team | None = None,
) -> Attempt:
    """Render every file that changes by what is decided about the classes.

    Args:
        fixed_paths: paths of which nothing but classes may change.
        memory: texts of earlier attempts on the same project: most edits are the same again.
        team: who renders them.
    """
    memory = {} if memory is None else memory
    project, sizes = inputs.project, decisions.sizes
    opened = open_fields(project, sizes, decisions.conversions)
    modules_in = fields_of_modules(project, sizes, opened)
    builder_sizes = passed_sizes(project, sizes, decisions.conversions)
    module_fields = LazyModuleFields(
        project, {one: sizes[one] for one in decisions.conversions}, builder_sizes
    )
    open_in = {name: own - modules_in[name] for name, own in opened.items()}
    attempt = Attempt(
        decisions, modules_in=modules_in, open_in=open_in, module_fields=module_fields
    )
    context = OutsideContext(
        module_fields=module_fields,
        explicit_classes=frozenset(decisions.conversions),
        new_arguments={name: sizes[name].new_arguments for name in decisions.conversions},
        factories=decisions.factories,
        scope_functions=tuple(decisions.scope_functions.values()),
        explicit_statements=owned_statements(
            project,
            [project.linen[name] for name in decisions.conversions],
            [one.node for one in decisions.lazy_factories.values()],
        ),
        modules_in=modules_in,
        open_in=open_in,
        skip=frozenset(id(cls.node) for cls in project.linen.values()),
        keep_classes=frozenset(id(project.linen[name].node) for name in decisions.keep_classes),
    )

    def rendered(path: str) -> Attempt:
        around = None if path in fixed_paths else context
        part = Attempt(decisions)
        _render(project, path, inputs.targets[path], around, part, memory)
        return replace(part, decisions=Decisions())  # of which each process has its own

    every = (team or Team()).each({path: path for path in inputs.targets}, rendered)
    for part in every.values():
        attempt.add(part)
    return attempt


def _render(
    project: Project,
    path: str,
    module: Module,
    context: OutsideContext | None,
    attempt: Attempt,
    memory: Memory,
) -> None:
    classes = [c for c in project.linen.values() if c.module is module]
    converted = {c.name: attempt.decisions.conversions.get(c.name) for c in classes}
    outside = OutsideResult({}, frozenset(), ())
    if context is not None:
        outside = convert_outside(project, module, context)
    own = kept_lines(module)
    # A file that keeps lazy classes keeps their names for functions, too.
    left = frozenset() if all(converted.values()) else outside.plain
    edits = {one: edit for one, edit in outside.edits.items() if one not in left}
    edits = _without_lines(module, edits, own)
    attempt.edited_nodes[path] = frozenset(edits)
    attempt.lazy[path] = outside.lazy & edits.keys()
    attempt.explicit[path] = outside.explicit & edits.keys()
    attempt.doubts[path] = outside.doubts
    attempt.values |= outside.values
    attempt.mentions |= outside.mentions
    attempt.taking |= outside.taking
    attempt.inherits |= outside.inherits
    needed = outside.imports if edits else frozenset()
    attempt.remarks[path] = tuple(one for one in outside.findings if not _touches(one.node, own))
    attempt.keep_lines[path] = own
    for one in converted.values():
        if one is not None:
            edits.update(one.edits)
            needed |= one.imports
    if not edits:
        return
    try:
        renderer = renderer_of(module, edits).after_top_edits()
        starred = exported_imports(project, module, attempt.decisions.conversions)
        import_needs = needed, outside.edits.keys() <= edits.keys(), starred
        known = memory.get(path)
        if (
            known is None
            or known.import_needs != import_needs
            or not _are_same(known.edits, renderer.edits)
        ):
            text = _new_text(project, module, renderer, *import_needs)
            known = memory[path] = _FileText(renderer.edits, import_needs, text)
    except ImportConflict as error:
        _fail(attempt, path, Failure(str(error), "then run again"))
        return
    except (EditError, SyntaxError, ValueError) as error:
        reason = f"the new text cannot be made: {error}"
        _fail(attempt, path, Failure(reason, "please report this with the file"))
        return
    if known.text != module.text:
        attempt.texts[path] = known.text


def _new_text(
    project: Project,
    module: Module,
    renderer: Renderer,
    imports_needed: frozenset[str],
    is_whole: bool,
    star_names: frozenset[str],
) -> str:
    """The file with the edits and imports made.

    Args:
        is_whole: whether no edit was left out.
        star_names: names that others still take by a star.
    """
    made = renderer.render_module()
    made = settle_imports(
        made,
        module.tree,
        imports_needed if is_whole else used_imports(made, imports_needed),
        module.package,
        lambda name: name in star_names or is_imported(project, module, name),
        means_other=lambda name, symbol: means_other(project, module, name, symbol),
    )
    text: str = made.code
    ast.parse(text)
    return text


def _are_same(some: Mapping[int, Made], others: Mapping[int, Made]) -> bool:
    return some.keys() == others.keys() and all(_is_same(one, others[k]) for k, one in some.items())


def _is_same(one: Made, other: Made) -> bool:
    """Whether two replacements are the same code, comments included."""
    if one is other:
        return True
    if type(one) is not type(other) or one in (GONE, TAKEN):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one.deep_equals(other))


def _fail(attempt: Attempt, path: str, failure: Failure) -> None:
    """The file stays as it is: nothing that it does with a class has been edited."""
    attempt.failures[path] = failure
    attempt.edited_nodes[path] = attempt.lazy[path] = attempt.explicit[path] = frozenset()


def _without_lines(
    module: Module, edits: Mapping[int, Replacement], keep_lines: frozenset[int]
) -> dict[int, Replacement]:
    """Edits, those of statements on lines that the user keeps left out."""
    if not keep_lines:
        return dict(edits)
    nodes = (node for node in module.nodes if id(node) in edits)
    return {id(node): edits[id(node)] for node in nodes if not _touches(node, keep_lines)}


def _touches(node: ast.AST, lines: frozenset[int]) -> bool:
    first = getattr(node, "lineno", 0)
    return any(first <= line <= getattr(node, "end_lineno", first) for line in lines)
