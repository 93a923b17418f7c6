"""The loops of a run's new texts: ``--loop nnx``.

Explicit code is input here, that of this run or of an earlier one: what its callers are is written out
there. Either all places that a state goes through change together, or none does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from nnx_migrate.edit.data import EditError
from nnx_migrate.model import FileResult, FileStatus, Finding, Outcome, RewriteResult
from nnx_migrate.rewrite.imports import ImportConflict, settle_imports
from nnx_migrate.rewrite.loading import relative
from nnx_migrate.rewrite.loops.classes import statistics, unknown_state
from nnx_migrate.rewrite.loops.kinds import PLAIN, functions_of
from nnx_migrate.rewrite.loops.modules import STATE
from nnx_migrate.rewrite.loops.plan import Construction, ModelCall, Snapshot
from nnx_migrate.rewrite.loops.program import Problem, Program
from nnx_migrate.rewrite.loops.references import is_taken, stray_alias, stray_references
from nnx_migrate.rewrite.loops.rounds import read_program
from nnx_migrate.rewrite.loops.writing import replacement
from nnx_migrate.rewrite.render import renderer_of
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.rewrite.star_imports import means_other
from nnx_migrate.source.project import Module, Project, parse
from nnx_migrate.source.roots import import_names

LOOPS = ("functional", "nnx")
RULE = "loop"
_STATE = "TrainState"
_REPLACED = frozenset({STATE, STATE.rpartition(".")[0]})


@dataclass
class _Loops:
    """The loops of a project: what is known, by the first function of each group."""

    program: Program
    targets: Mapping[str, Module]
    groups: dict[int, set[int]] = field(default_factory=dict)
    refusals: dict[int, Problem] = field(default_factory=dict)


def with_nnx_loops(request: RewriteRequest, result: RewriteResult) -> RewriteResult:
    """A result whose training loops are NNX's where that is proven; findings say where not, and why."""
    base = request.base or request.root
    codes = {one.path: one.code for one in result.files if one.code is not None}
    failed = {one.path for one in result.files if one.status is FileStatus.FAILED}
    old = {relative(one.path, base): one.text for one in request.files}
    if not any(_STATE in text for text in old.values()):
        return result
    loops = _read(request, {**old, **codes}, result, failed)
    texts = _texts(loops)
    lines = _Lines(old, codes)
    findings = [one for one in _findings(loops, lines) if one.path in old]
    files = tuple(_file(one, texts.get(one.path)) for one in result.files)
    ordered = sorted(
        {*result.findings, *findings}, key=lambda f: (f.path, f.line, f.column, f.rule, f.message)
    )
    return replace(result, files=files, findings=tuple(ordered))


def _file(result: FileResult, text: str | None) -> FileResult:
    return result if text is None else replace(result, status=FileStatus.REWRITTEN, code=text)


def _read(
    request: RewriteRequest, texts: Mapping[str, str], result: RewriteResult, failed_paths: set[str]
) -> _Loops:
    base = request.base or request.root
    project, targets = Project(), dict[str, Module]()
    sources = [*request.files, *request.context]
    names = import_names(sources, request.root)
    own = {id(one) for one in request.files}
    for source in sources:
        path = relative(source.path, base) if id(source) in own else str(source.path)
        name, is_package = names[id(source)]
        try:
            module = parse(name, path, texts.get(path, source.text), is_package=is_package)
        except (SyntaxError, ValueError, RecursionError):
            continue
        project.modules[name] = module
        if id(source) in own and path not in failed_paths:
            targets[path] = module
    maps = result.migration_map.classes
    program = Program(project)
    finished = read_program(program, project.modules.values())
    loops = _Loops(program, targets, _groups(program))
    renamed = any(one.attributes for one in maps)
    for first, group in loops.groups.items():
        problem = _problem(loops, group, is_finished=finished, is_renamed=renamed)
        if problem is not None:
            loops.refusals[first] = problem
    return loops


def _groups(program: Program) -> dict[int, set[int]]:
    """Functions that a state goes through together, each group with a state that it makes."""
    beside: dict[int, set[int]] = {}
    for one, other in program.links:
        beside.setdefault(one, set()).add(other)
        beside.setdefault(other, set()).add(one)
    groups: dict[int, set[int]] = {}
    done: set[int] = set()
    for key in program.creates:
        if key in done:
            continue
        group, todo = {key}, [key]
        while todo:
            fresh = beside.get(todo.pop(), set()) - group
            group |= fresh
            todo += fresh
        groups[key] = group
        done |= group
    return groups


def _problem(
    loops: _Loops, group: set[int], *, is_finished: bool, is_renamed: bool
) -> Problem | None:
    """Why a group stays functional: the first reason in the order of its functions."""
    program = loops.program
    path, create = next(one for key in group for one in program.creates.get(key, ()))
    if not is_finished:
        return Problem(path, create, "what its functions hand each other cannot be followed")
    found = [one for key in group for one in program.problems.get(key, ())]
    if found:
        causes = [one for key in group for one in program.causes.get(key, ())]
        return min(causes or found, key=_order)
    for module in program.project.modules.values():
        reason = unknown_state(program.project, module)
        if reason is not None:
            return Problem(path, create, reason)
    whole = next((program.whole[key] for key in group & program.whole.keys()), None)
    if whole is not None:
        modules = program.project.modules.values()
        reason = next(filter(None, (statistics(program.project, one) for one in modules)), None)
        if reason is not None:
            return Problem(*whole, reason)
    if is_renamed:
        for key in group & program.order_dependence.keys():
            return Problem(
                *program.order_dependence[key], "a sum over all parameters has another order"
            )
    escaped = program.every_escape()
    for key in group & program.nodes.keys():
        definition, scope = program.nodes[key]
        if loops.targets.get(scope.module.path) is not scope.module:
            return Problem(scope.module.path, definition, "this file is not rewritten in this run")
        summary = program.summary(key)
        if summary.is_touched and key in escaped:
            return escaped[key]
        if summary.is_touched or functions_of(summary.result or PLAIN):
            stray = stray_references(program, definition, scope.module)
            stray = stray or stray_alias(program, key)
            if stray is not None:
                return stray
    return None


def _order(one: Problem) -> tuple[bool, str, int]:
    """Places in functions before what is said of a function as a whole."""
    return isinstance(one.node, ast.FunctionDef), one.path, getattr(one.node, "lineno", 0)


# ---- texts


def _texts(loops: _Loops) -> dict[str, str]:
    """The new texts; a group whose text cannot be made is refused, and all are made again."""
    while True:
        texts: dict[str, str] = {}
        failure: Problem | None = None
        for path, module in loops.targets.items():
            try:
                text = _text(loops, module)
            except (EditError, ImportConflict, SyntaxError) as error:
                failure = Problem(path, module.tree, f"the new text cannot be made: {error}")
                break
            if text != module.text:
                texts[path] = text
        if failure is None:
            return texts
        for first, group in loops.groups.items():
            if first not in loops.refusals and any(
                _module_of(loops, key) == failure.path for key in group
            ):
                loops.refusals[first] = failure


def _module_of(loops: _Loops, key: int) -> str:
    found = loops.program.nodes.get(key)
    if found is not None:
        return found[1].module.path
    return next((p for p, one in loops.targets.items() if id(one.tree) == key), "")


def _text(loops: _Loops, module: Module) -> str:
    changing = {
        key for first, group in loops.groups.items() if first not in loops.refusals for key in group
    }
    changes = {
        node: change
        for key in changing
        for node, change in loops.program.changes.get(key, {}).items()
    }
    nodes = {id(one): one for one in module.nodes}
    own = {key: change for key, change in changes.items() if key in nodes}
    if not own:
        return module.text
    edits = {key: replacement(nodes[key], change) for key, change in own.items()}
    needed = {"nnx"}
    if any(isinstance(one, ModelCall) and one.with_keys for one in own.values()):
        needed.add("nnm")
    if any(isinstance(one, Snapshot) for one in own.values()):
        needed.add("nnm")
    built = [one for one in own.values() if isinstance(one, Construction)]
    needed |= {"explicit"} if built else set()
    needed |= {"functools"} if any(one.is_compiled for one in built) else set()
    made = renderer_of(module, edits).render_module()
    made = settle_imports(
        made,
        module.tree,
        frozenset(needed),
        module.package,
        lambda name: is_taken(loops.program.project, module, name),
        _REPLACED,
        lambda name, symbol: means_other(loops.program.project, module, name, symbol),
    )
    text: str = made.code
    ast.parse(text)
    return text


# ---- findings


@dataclass(frozen=True)
class _Lines:
    """Lines of the files that were read, for those of the texts that the loops were read in."""

    old: Mapping[str, str]
    new: Mapping[str, str]

    def at(self, path: str, node: ast.AST) -> int:
        """The line of a node."""
        line: int = getattr(node, "lineno", 1)
        if path not in self.new or path not in self.old:
            return line
        old, new = self.old[path].splitlines(), self.new[path].splitlines()
        for _, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if c <= line - 1 < d:
                return min(a + (line - 1 - c), max(b - 1, a)) + 1
        return line


def _findings(loops: _Loops, lines: _Lines) -> Iterator[Finding]:
    for first, group in loops.groups.items():
        problem = loops.refusals.get(first)
        for path, node in _creates(loops.program, group):
            at = (path, lines.at(path, node), getattr(node, "col_offset", 0) + 1)
            if problem is None:
                message = "the loop around this state is NNX's: a module and its nnx.Optimizer"
                yield Finding(RULE, *at, Outcome.REWRITTEN, message)
            else:
                place = f"{problem.path}:{lines.at(problem.path, problem.node)}"
                message = f"the loop around this state stays functional: {problem.reason} ({place})"
                yield Finding(RULE, *at, Outcome.KEPT, message)


def _creates(program: Program, group: Iterable[int]) -> Iterator[tuple[str, ast.AST]]:
    visited: set[int] = set()
    for key in group:
        for path, node in program.creates.get(key, ()):
            if id(node) not in visited:
                visited.add(id(node))
                yield path, node
