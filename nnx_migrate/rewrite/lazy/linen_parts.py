"""What of a project stays Linen beside lazy code: kept by a comment or option, or by its base."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from nnx_migrate.rewrite.decide import class_globs, is_selected
from nnx_migrate.rewrite.keep import is_kept, kept_lines
from nnx_migrate.rewrite.lazy.foreign import foreign_bases
from nnx_migrate.rewrite.lazy.plan import FileParts
from nnx_migrate.rewrite.loading import RewriteInput, load
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import Import, relative_target
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, walk

_COMMENT = re.compile(r"#\s*nnx-migrate:\s*keep\b")
_BASE = "its base "
USER = "kept by a comment or an option"


@dataclass(frozen=True)
class LinenClass:
    """A class that stays Linen: its name, and why."""

    name: str
    reason: str


@dataclass
class LinenParts:
    """What stays Linen: classes by (path, line), and what that means for each file."""

    classes: dict[tuple[str, int], LinenClass] = field(default_factory=dict)
    lift_calls: list[tuple[str, ast.Call, str]] = field(default_factory=list)  # path, place, why
    files: dict[str, FileParts | None] = field(default_factory=dict)


def keeps(request: RewriteRequest) -> LinenParts:
    """Find out what stays Linen; the project is only read when something does."""
    found = LinenParts()
    chosen = [*class_globs(request.select), *class_globs(request.exclude)]
    if chosen or any(_COMMENT.search(one.text) for one in request.files if "nnx" in one.text):
        _read(request, found)
    for path, line, name, package in foreign_bases(request):
        reason = f"its base is Linen in package {package}"
        found.classes.setdefault((path, line), LinenClass(name, reason))
    return found


def _read(request: RewriteRequest, linen_parts: LinenParts) -> None:
    loaded = load(request)
    project = loaded.project
    staying = _staying(request, project)
    selecting = bool(class_globs(request.select))
    handed_on = _handed_on(project, staying, selecting)
    for path, module in loaded.targets.items():
        classes = [one for one in project.linen.values() if one.module is module]
        for cls in classes:
            if cls.name in staying:
                linen_parts.classes[path, cls.node.lineno] = LinenClass(
                    cls.qualname, staying[cls.name]
                )
        lines = kept_lines(module)
        spans = _spans(classes, staying, selecting)
        linen_parts.files[path] = FileParts(
            _inside(spans, lines, selecting),
            pinned=_inside([], lines, False),
            unused_stay=selecting,
            handed_on=handed_on[module.name],
            elsewhere=_elsewhere(loaded, module, handed_on),
        )
        stays = linen_parts.files[path]
        assert stays is not None
        linen_parts.lift_calls += [
            (path, call, why) for call, why in _lift_calls(project, module, staying, stays.stays)
        ]


_CLASS_LIFTS = frozenset(
    {"checkpoint", "jit", "map_variables", "remat", "remat_scan", "scan", "vmap"}
)


def _lift_calls(
    project: Project, module: Module, staying: dict[str, str], stays: Callable[[ast.AST], bool]
) -> Iterator[tuple[ast.Call, str]]:
    """Calls that let a lift of flax.linen, which stays, take a class that becomes lazy."""
    for node in walk(module.tree):
        if not isinstance(node, ast.Call) or not node.args or not stays(node):
            continue
        lift, target = (project.resolve(one, Scope(module)) for one in (node.func, node.args[0]))
        home, _, name = (lift or "").rpartition(".")
        if not home.startswith("flax.linen") or name not in _CLASS_LIFTS:
            continue
        if target in project.linen and target not in staying:
            cls = project.linen[target].qualname
            why = f"flax.linen.{name} takes Linen classes only, and {cls} becomes lazy:"
            yield node, f"{why} lift it with nnx_migrate.linen.{name}, or select this place too"


def _staying(request: RewriteRequest, project: Project) -> dict[str, str]:
    """Classes that stay Linen and why; the bases of those that the user keeps, too."""
    own = project.linen
    marked = {
        name
        for name, cls in own.items()
        if is_kept(cls.module, cls.node, kept_lines(cls.module))
        or not is_selected(cls.qualname, (), request.exclude)
    }
    staying = dict.fromkeys(marked, USER)
    staying |= {
        name: USER for name, cls in own.items() if not is_selected(cls.qualname, request.select, ())
    }
    for name in marked:
        for base in own[name].mro[1:]:
            if base.linen:
                staying.setdefault(base.name, f"{own[name].qualname} is kept and inherits from it")
    for name, cls in own.items():
        above = next((one.name for one in cls.mro[1:] if one.name in staying), None)
        if above is not None and name not in staying:
            staying[name] = f"{_BASE}{own[above].qualname} stays Linen"
    return staying


def _spans(
    classes: list[ClassInfo], staying: dict[str, str], selecting: bool
) -> list[tuple[int, int]]:
    """Lines of the classes whose text stays Linen; with ``--select`` of those whose does not.

    A class that is Linen because its base is may itself use lazy layers.
    """
    if selecting:
        return [_span(one.node) for one in classes if one.name not in staying]
    own = [one for one in classes if not staying.get(one.name, _BASE).startswith(_BASE)]
    return [_span(one.node) for one in own]


def _span(node: ast.ClassDef) -> tuple[int, int]:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return first, node.end_lineno or node.lineno


def _inside(
    spans: list[tuple[int, int]], lines: frozenset[int], selecting: bool
) -> Callable[[ast.AST], bool]:
    def stays(node: ast.AST) -> bool:
        line = getattr(node, "lineno", 0)
        end = getattr(node, "end_lineno", line) if isinstance(node, ast.stmt) else line
        if any(line <= one <= end for one in lines):
            return True
        return any(first <= end and line <= last for first, last in spans) != selecting

    return stays


def _handed_on(
    project: Project, staying: dict[str, str], selecting: bool
) -> defaultdict[str, frozenset[str]]:
    """Names of each module that files with something Linen take from it."""
    keeping = {project.linen[name].module.name for name in staying}
    found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for module in project.modules.values():
        if not selecting and module.name not in keeping:
            continue
        for statement in each(module.tree, ast.ImportFrom):
            owner = relative_target(module.package, statement.level, statement.module)
            if owner in project.modules:
                found[owner] |= {one.name for one in statement.names}
    return found


def _elsewhere(
    module_name: RewriteInput, module: Module, handed_on: defaultdict[str, frozenset[str]]
) -> Callable[[ast.ImportFrom, int], str | None]:
    """The Linen symbol of a name taken from a file where it stays Linen.

    Positions are those of another parse of the same text: statements are told by their place.
    """

    def symbol(statement: ast.ImportFrom, position: int) -> str | None:
        owner = relative_target(module.package, statement.level, statement.module)
        name = statement.names[position].name
        if name not in handed_on.get(owner, ()):
            return None
        binding = module_name.project.modules[owner].table.get(name)
        if not isinstance(binding, Import):
            return None
        return module_name.project.canonical(binding.target)

    return symbol
