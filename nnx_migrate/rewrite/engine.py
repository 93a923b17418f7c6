"""The rewriting engine: from a request to what every file, class and reference becomes.

Nothing is written here. The books are settled by the ledger, which shares no code with the rules; a
class whose books do not balance is refused and the run is decided again without it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from nnx_migrate import ledger
from nnx_migrate.model import Outcome, RewriteResult
from nnx_migrate.rewrite.attempt import Attempt, make_attempt
from nnx_migrate.rewrite.attempt import Memory as Texts
from nnx_migrate.rewrite.classes import ClassRefusal
from nnx_migrate.rewrite.conversions import Memory
from nnx_migrate.rewrite.decide import Decisions, decide
from nnx_migrate.rewrite.evidence import evidence_of, with_evidence
from nnx_migrate.rewrite.extra_arguments import ExtraArguments
from nnx_migrate.rewrite.lazy_submodules import left_to_first_calls
from nnx_migrate.rewrite.left_classes import edited_in_left_classes
from nnx_migrate.rewrite.links import links_of
from nnx_migrate.rewrite.loading import RewriteInput, load
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.rewrite.results import class_outcome, position, result_of, staying_names
from nnx_migrate.rewrite.shares import share
from nnx_migrate.rewrite.workers import Team, can_fork
from nnx_migrate.sizes import ClassSizes, SizeMemory, analyse
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project

_ATTEMPTS = 6  # decisions without the classes that earlier attempts could not finish


Claims = dict[tuple[str, int, int], Outcome]  # by path, line and column


class EngineError(Exception):
    """The run cannot be finished honestly."""


class Ground:
    """What is read of a project before anything is decided: the same for every attempt of a run.

    Raises:
        EvidenceError: the evidence file cannot be used.
    """

    def __init__(self, request: RewriteRequest, team: Team | None = None) -> None:
        self.inputs = load(request)
        self.evidence = evidence_of(request, self.inputs)
        changing = {id(module) for module in self.inputs.targets.values()}
        linen = self.inputs.project.linen.items()
        self._names = [name for name, c in linen if id(c.module) in changing]
        self._known_sizes = SizeMemory(self.inputs.project)
        self.read = ledger.Read()  # by every count of the run
        self._memory: Memory = {}
        self.texts: Texts = {}
        self._targets = frozenset(changing)
        self._chosen = (request.select, request.exclude)
        self.before = self.count({})
        self.team = team or Team()
        if team is not None and request.jobs > 1 and can_fork():
            share(self.inputs.project, request.jobs, team)

    def sizes(self, extras: ExtraArguments) -> Mapping[str, ClassSizes]:
        """The sizes of all classes to rewrite, with their extra arguments."""
        project, known = self.inputs.project, self._known_sizes
        own = [name for name in self._names if self.team.owns(project.linen[name].module.path)]
        found = analyse(project, own, self.evidence, extras.by_class(), memory=known)
        theirs = {*self._names} - {*own}
        every = self.team.together({name: found[name] for name in found.keys() - theirs})
        return dict(sorted(left_to_first_calls(every, extras.without_extras).items()))

    def decide(
        self,
        sizes: Mapping[str, ClassSizes],
        known_refusals: Mapping[str, ClassRefusal],
        extras: ExtraArguments,
    ) -> Decisions:
        """What becomes of every class; most conversions are those of earlier decisions."""
        project, denied = self.inputs.project, frozenset(extras.without_extras)
        chosen = (self._targets, *self._chosen)
        return decide(project, sizes, *chosen, known_refusals, denied, self._memory, self.team)

    def count(self, texts: Mapping[str, str], *, are_lazy_linen: bool = False) -> ledger.Count:
        """References and call sites of the project with these new texts."""
        sources = [
            ledger.Source(module.path, module.name, texts.get(module.path, module.text))
            for module in self.inputs.project.modules.values()
        ]
        return ledger.count(
            sources,
            frozenset(self.inputs.targets),
            self.read,
            are_lazy_linen=are_lazy_linen,
        )


@dataclass(frozen=True)
class Premises:
    """What earlier attempts left unproven.

    Attributes:
      doubts: classes that must not become explicit, and why.
      open_fields: by class, fields that are to build modules of whatever class they are given.
    """

    doubts: Mapping[str, str] = field(default_factory=dict)
    open_fields: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Explicit:
    """A finished attempt at the explicit form, and what it was decided on."""

    ground: Ground
    inputs: RewriteInput
    attempt: Attempt
    books: ledger.Ledger
    result: RewriteResult


def rewrite_project(request: RewriteRequest) -> RewriteResult:
    """Decide and render everything a request asks for, in the explicit form or not at all.

    Raises:
      as `make_explicit`.
    """
    return make_explicit(request).result


def make_explicit(
    request: RewriteRequest,
    premises: Premises | None = None,
    ground: Ground | None = None,
    team: Team | None = None,
) -> Explicit:
    """Decide and render everything a request asks for, in the explicit form or not at all.

    Args:
        premises: what earlier attempts left unproven; nothing, if left out.
        ground: what an earlier attempt read for the same request.
        team: who works on it; only this process, if left out.

    Raises:
        EngineError: the ledger does not balance whatever is refused.
        EvidenceError: the evidence file cannot be used.
        TeamError: another process of the team has ended.
    """
    ground = ground or Ground(request, team)
    loaded, evidence, before = ground.inputs, ground.evidence, ground.before
    premises = premises or Premises()
    extras = ExtraArguments(links_of(loaded.project).builds, premises.open_fields)
    sizes = ground.sizes(extras)
    barred = {
        name: _doubt_refusal(loaded.project, name, why) for name, why in premises.doubts.items()
    }
    untouched: frozenset[str] = frozenset()
    for _ in range(_ATTEMPTS):
        decisions = ground.decide(sizes, barred, extras)
        while extras.learn(decisions, sizes):
            sizes = ground.sizes(extras)
            decisions = ground.decide(sizes, barred, extras)
        attempt = make_attempt(loaded, decisions, untouched, ground.texts, ground.team)
        after = ground.count(attempt.texts, are_lazy_linen=attempt.inherits)
        staying = staying_names(loaded.project, decisions)
        claims = _claims(loaded, attempt, before, after)
        books = ledger.settle(before, after, *claims, staying)
        unfinished = _refusals_of_faults(loaded, attempt, books)
        if not unfinished and not books.violations:
            result = with_evidence(
                result_of(loaded, attempt, decisions.sizes, books),
                evidence,
                loaded,
                decisions.sizes,
            )
            return Explicit(ground, loaded, attempt, books, result)
        if not unfinished:
            broken = _broken_files(attempt, books) - untouched
            if not broken:
                break
            untouched |= broken
        barred = {**barred, **unfinished}
    raise EngineError(f"the ledger does not balance: {books.violations[:3]}; please report this")


def _doubt_refusal(project: Project, name: str, why: str) -> ClassRefusal:
    return ClassRefusal(project.linen[name].node, why, "rewrite that place, then run again", "lazy")


def _claims(
    inputs: RewriteInput, attempt: Attempt, before: ledger.Count, after: ledger.Count
) -> tuple[dict[str, Outcome], Claims, Claims]:
    classes = {
        cls.qualname: class_outcome(attempt, name)
        for name, cls in inputs.project.linen.items()
        if name not in attempt.decisions.outside
    }
    places: Claims = {}
    calls: Claims = {}
    for path, lines in attempt.keep_lines.items():
        sites = (*before.call_sites, *before.handles)
        for claims, counted in ((places, before.references), (calls, sites)):
            on = [one for one in counted if one.path == path and one.line in lines]
            claims.update({one.at: Outcome.KEPT for one in on})
    places.update(dict.fromkeys(edited_in_left_classes(inputs.project, attempt), Outcome.REWRITTEN))
    for path, remarks in attempt.remarks.items():
        module = inputs.targets[path]
        for remark in remarks:
            if remark.outcome is Outcome.REWRITTEN:
                continue  # the ledger finds that out itself
            if remark.kind == "reference":
                places[(path, *position(module, remark.node))] = remark.outcome
    return classes, places, _without_lazy(calls, attempt, before, after)


def _without_lazy(
    claims: Claims, attempt: Attempt, before: ledger.Count, after: ledger.Count
) -> Claims:
    """The claims of places that are left: calls of what is built by ``lazy(Class)`` are none.

    Of places alike, as many are left as the output has; those that the user keeps are left first.
    """
    found = dict(claims)
    for sites, left in zip(
        (before.call_sites, before.handles), ledger.survivors(before, after), strict=True
    ):
        numbers = Counter((one.path, one.scope, one.symbol) for one in left)
        own = {id(one) for one in sites if one.line in attempt.keep_lines.get(one.path, ())}
        for one in sorted(sites, key=lambda one: id(one) not in own):
            key = (one.path, one.scope, one.symbol)
            if one.at in claims and id(one) not in own and numbers[key] <= 0:
                found.pop(one.at, None)
            numbers[key] -= one.at in claims
    return found


def _refusals_of_faults(
    inputs: RewriteInput, attempt: Attempt, books: ledger.Ledger
) -> dict[str, ClassRefusal]:
    """Classes to refuse because their file or their books went wrong."""
    bad: dict[str, ClassRefusal] = {}
    for cls in inputs.project.linen.values():
        if cls.name not in attempt.decisions.conversions:
            continue
        failure = attempt.failures.get(cls.module.path)
        violation = next((v for v in books.violations if _names(v, cls)), None)
        if failure is not None:
            bad[cls.name] = ClassRefusal(cls.node, failure.reason, failure.recipe, "file")
        elif violation is not None:
            recipe = "please report this with the class"
            bad[cls.name] = ClassRefusal(cls.node, violation, recipe, "ledger")
    if books.violations and not bad:
        named = books.violations
        for cls in inputs.project.linen.values():
            if cls.name in attempt.decisions.conversions and any(
                cls.module.path in v for v in named
            ):
                bad[cls.name] = ClassRefusal(cls.node, named[0], "please report this", "ledger")
    return bad


def _names(violation: str, cls: ClassInfo) -> bool:
    """Whether a violation is about a class or something in it; the ledger leaves out ``<locals>``."""
    name = re.escape(cls.dotted_name)
    return re.search(rf"(?<![\w.]){name}(?!\w)", violation) is not None


def _broken_files(attempt: Attempt, books: ledger.Ledger) -> frozenset[str]:
    """Files that changed around their classes and whose books went wrong: left as they were."""
    return frozenset(path for path in attempt.texts if any(path in v for v in books.violations))
