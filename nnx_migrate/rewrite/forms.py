"""The forms of output: explicit where proven, lazy elsewhere, or all lazy.

The explicit engine decides first. What its attempt leaves unproven it is asked again without; a
doubt that remains, a crash and a time limit all mean lazy. Then every reference to ``flax.linen``
that is left becomes a lazy one.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

from nnx_migrate import ledger
from nnx_migrate.evidence.schema import EvidenceError
from nnx_migrate.model import ClassResult, Confidence, Finding, Form, Outcome, RewriteResult
from nnx_migrate.rewrite.bugs import describe
from nnx_migrate.rewrite.engine import Explicit, Ground, Premises, make_explicit
from nnx_migrate.rewrite.idiomatic_names import with_idiomatic_names
from nnx_migrate.rewrite.lazy.report import Report, report
from nnx_migrate.rewrite.lazy.run import LazyTexts, make_lazy
from nnx_migrate.rewrite.loading import relative
from nnx_migrate.rewrite.loops import with_nnx_loops
from nnx_migrate.rewrite.proof import Doubt, judge
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.rewrite.results import in_order
from nnx_migrate.rewrite.workers import Team, TeamError
from nnx_migrate.sizes.open_fields import openable
from nnx_migrate.source.project import Project
from nnx_migrate.source.settings import SettingsError

FORMS = ("auto", "lazy", "explicit")
_SECONDS = 900.0  # of CPU, for the analysis of one project; what is not decided by then is lazy
_STAYS = "stays Linen"
# Places around classes: what the first attempt says of them, a lazy form of the class has settled.
_AROUND = frozenset({"call_site", "reference"})
_ROUNDS = 6  # attempts without what earlier ones left unproven


class OutOfTime(BaseException):
    """The analysis takes too long.

    Not an `Exception`: what keeps a bug in one class from the others must not keep this one.
    """


@dataclass
class _Proof:
    """The explicit part of a run: None when there is none, and why classes are lazy."""

    explicit: Explicit | None = None
    # What is not proven, by the class
    unproven_classes: Mapping[str, Doubt] = field(default_factory=dict)
    doubts: dict[str, Doubt] = field(default_factory=dict)  # by the class's qualified name
    first: RewriteResult | None = None  # what the engine says of classes by itself
    last: RewriteResult | None = None  # and without what is not proven
    failure: str | None = None
    ground: Ground | None = None  # what was read for them
    # By class, fields of which it is not proven what classes they are given.
    open_fields: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)  # files that are no Python


def rewrite_in(
    request: RewriteRequest,
    form: str = "auto",
    loop: str = "functional",
    names: str = "linen",
) -> RewriteResult:
    """Rewrite the files of a request in one of `FORMS`; ``explicit`` decides as ``auto`` does.

    Training loops around explicit classes become NNX's with the `loop` ``nnx``, where proven; their
    attributes are in snake case with the `names` ``idiomatic``.

    Raises:
        EvidenceError: the evidence file cannot be used.
        SettingsError: the project's settings do not fit its code.
    """
    result = rewrite_lazily(request) if form == "lazy" else _rewrite(request)
    if names == "idiomatic":
        result = with_idiomatic_names(request, result)
    return with_nnx_loops(request, result) if loop == "nnx" else result


def rewrite_lazily(request: RewriteRequest) -> RewriteResult:
    """Every class lazy; nothing has to be understood about it."""
    made = make_lazy(request)
    return report(request, made, made.texts).result


def _rewrite(request: RewriteRequest) -> RewriteResult:
    """Every class explicit where proven, else lazy.

    The ledger, which shares no code with the proof, counts the callers of both outputs. A class of which it
    finds one that would break is lazy after all.
    """
    proof = _prove(request)
    found = _combine(request, proof)
    while broken := _with_broken_callers(proof, found.broken_callers):
        barred = {**proof.unproven_classes, **broken}
        proof = _prove(
            request, replace(proof, explicit=None, ground=_whole(proof), unproven_classes=barred)
        )
        found = _combine(request, proof)
    return found.result


def _with_broken_callers(proof: _Proof, places: Iterable[ledger.Place]) -> dict[str, Doubt]:
    """The explicit classes whose constructors are called there, as before."""
    if proof.explicit is None:
        return {}
    linen = proof.explicit.inputs.project.linen
    converted = proof.explicit.attempt.decisions.conversions
    names = {linen[one].dotted_name: one for one in converted}
    reason = "it is built here in a way that is not followed"
    return {
        names[one.symbol]: Doubt(one.path, one.line, reason)
        for one in places
        if one.symbol in names
    }


def _whole(proof: _Proof) -> Ground | None:
    """What was read for a proof; None where other processes, which have ended, read a part of it."""
    return proof.ground if proof.ground is not None and not proof.ground.team.was_started else None


def _prove(request: RewriteRequest, start: _Proof | None = None) -> _Proof:
    """The explicit classes that are proven with every place that they hang together with.

    Args:
        start: what is known of them already.
    """
    start = start or _Proof()
    try:
        return _proven(request, replace(start))
    except TeamError:
        return _proven(replace(request, jobs=1), start)


def _proven(request: RewriteRequest, proof: _Proof) -> _Proof:
    """The same, by as many processes as are wanted.

    Raises:
        TeamError: they could not finish it together; what keeps them from it one alone can tell.
    """
    team = Team()
    try:
        with _limit(_SECONDS), team:
            _attempt(request, proof, team)
    except (EvidenceError, SettingsError):
        raise
    except (Exception, OutOfTime) as bug:
        if team.was_started and not isinstance(bug, OutOfTime):
            raise TeamError(str(bug)) from bug
        if os.environ.get("NNX_MIGRATE_DEBUG") == "1":
            raise
        proof.explicit = None
        proof.failure = _internal(bug)
    return proof


def _attempt(request: RewriteRequest, proof: _Proof, team: Team) -> None:
    for _ in range(1 + _ROUNDS):
        whys = {name: f"not proven: {doubt.text}" for name, doubt in proof.unproven_classes.items()}
        premises = Premises(whys, proof.open_fields)
        made = make_explicit(request, premises, proof.ground, team)
        proof.ground = made.ground
        if proof.first is None:
            proof.first = made.result
            failures = made.inputs.failures
            proof.unreadable = {one.path: one.error for one in failures if one.error is not None}
        fresh = judge(made.inputs, made.attempt, made.books, made.result, team)
        if more := _to_open(made.inputs.project, fresh, proof.open_fields):
            proof.open_fields = more
            continue
        linen = made.inputs.project.linen
        proof.last = made.result
        proof.unproven_classes = {**proof.unproven_classes, **fresh}
        proof.doubts = {
            linen[name].qualname: doubt for name, doubt in proof.unproven_classes.items()
        }
        if not fresh:
            proof.explicit = made if made.attempt.decisions.conversions else None
            return


def _to_open(
    project: Project, doubts: Mapping[str, Doubt], open_fields: Mapping[str, frozenset[str]]
) -> Mapping[str, frozenset[str]]:
    """The open fields, with those that classes are doubted for; empty if these are none."""
    found = {key: set(names) for key, names in open_fields.items()}
    for doubt in doubts.values():
        for cls, name in openable(project, *doubt.field) if doubt.field is not None else ():
            found.setdefault(cls, set()).add(name)
    wider = {cls: frozenset(names) for cls, names in found.items()}
    return wider if wider != open_fields else {}


def _combine(request: RewriteRequest, proof: _Proof) -> Report:
    """The explicit part with all that is left made lazy."""
    base = request.base or request.root
    explicit = proof.explicit.result if proof.explicit is not None else None
    texts = {one.path: one.code for one in explicit.files if one.code} if explicit else {}
    sources = tuple(
        replace(one, text=texts.get(relative(one.path, base), one.text)) for one in request.files
    )
    made = make_lazy(replace(request, files=sources))
    made.failures = {**proof.unreadable, **made.failures}
    for path in made.failures:
        texts.pop(path, None)
    read = proof.ground.read if proof.ground is not None else None
    found = report(request, made, {**texts, **made.texts}, is_mixed=explicit is not None, read=read)
    result = found.result
    classes = _classes(result, explicit, proof, made)
    findings = [*result.findings, *_findings(explicit, proof, classes)]
    if proof.failure is not None:
        path = min((one.path for one in result.files), default="")
        message = f"{proof.failure}; every class is lazy"
        findings.append(Finding("internal", path, 1, 1, Outcome.REWRITTEN, message))
    whole = replace(
        result,
        classes=classes,
        findings=in_order(findings),
        migration_map=explicit.migration_map if explicit else result.migration_map,
    )
    return replace(found, result=whole)


def _classes(
    result: RewriteResult, explicit: RewriteResult | None, proof: _Proof, lazy_texts: LazyTexts
) -> tuple[ClassResult, ...]:
    """Every class once: explicit ones as the engine says, lazy ones with the reason."""
    decided = {(one.path, one.line): one for one in (explicit.classes if explicit else ())}
    first = {(one.path, one.line): one for one in (proof.first.classes if proof.first else ())}
    last = {(one.path, one.line): one for one in (proof.last.classes if proof.last else ())}
    lazy = {(one.path, one.line): one for one in result.classes}
    found: list[ClassResult] = []
    for at in sorted({*decided, *first, *lazy}):
        own, known = decided.get(at), lazy.get(at)
        if (
            own is not None
            and own.outcome is Outcome.REWRITTEN
            and at[0] not in lazy_texts.failures
        ):
            found.append(replace(own, form=Form.EXPLICIT))
        elif known is not None and known.outcome is not Outcome.REWRITTEN:
            found.append(known)
        else:
            found.append(
                _lazy(at, known, _engine_result(first.get(at), last.get(at)), proof, lazy_texts)
            )
    return tuple(found)


def _engine_result(first: ClassResult | None, last: ClassResult | None) -> ClassResult | None:
    """What the engine says of a class that is lazy: at last, where it gave it up in the end."""
    if first is None or first.outcome is not Outcome.REWRITTEN or last is None:
        return first
    return first if last.outcome is Outcome.REWRITTEN else last


def _lazy(
    at: tuple[str, int],
    lazy_result: ClassResult | None,
    engine: ClassResult | None,
    proof: _Proof,
    lazy_texts: LazyTexts,
) -> ClassResult:
    named = engine or lazy_result
    name = named.name if named is not None else ""
    if at[0] in lazy_texts.failures:
        reason = f"its file failed: {lazy_texts.failures[at[0]]}"
        return ClassResult(name, *at, Outcome.REFUSED, reason=reason)
    plain = ClassResult(name, *at, Outcome.REWRITTEN)
    # What it would take, and what was recorded, the engine knows of refused classes too.
    result = replace(
        engine or plain, outcome=Outcome.REWRITTEN, form=Form.LAZY, confidence=Confidence.EXACT
    )
    if proof.failure is not None:
        return replace(result, reason=proof.failure, reason_place=None)
    if engine is not None and engine.outcome is not Outcome.REWRITTEN:
        # The engine speaks of a world without a lazy form.
        return replace(result, reason=(engine.reason or "not proven").replace(_STAYS, "is lazy"))
    doubt = proof.doubts.get(name)
    result = replace(result, new_arguments=())
    reason = f"not proven: {doubt.text}" if doubt else "not proven"
    return replace(result, reason=reason, reason_place=None)


def _findings(
    explicit: RewriteResult | None, proof: _Proof, classes: tuple[ClassResult, ...]
) -> Iterator[Finding]:
    """What the engine has to say; what keeps a class from the explicit form needs no person."""
    failed = {one.path for one in classes if one.outcome is Outcome.REFUSED}
    for result in (explicit, proof.first):
        for one in result.findings if result is not None else ():
            if one.path in failed or (result is not explicit and explicit and one.rule in _AROUND):
                continue
            if one.outcome is Outcome.REFUSED:
                yield replace(one, outcome=Outcome.REWRITTEN, message=f"lazy: {one.message}")
            elif result is explicit:
                yield one


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` inside the block after that long; only where signals can be had.

    The time is the process's own, so that what is decided does not hang on what else runs.
    """
    usable = hasattr(signal, "SIGVTALRM") and threading.current_thread() is threading.main_thread()
    if not usable:
        yield
        return

    late = OutOfTime(f"the analysis takes longer than {seconds:.0f} s of CPU")
    rung: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        rung.append(number)
        raise late

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)  # again, where a finalizer swallows it
    try:
        yield
        if rung:  # something swallowed it, so what was decided may lack a part
            raise late
    except Exception as error:
        if rung:  # Python's own C code turned it into an error of its own
            raise late from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _internal(bug: Exception | OutOfTime) -> str:
    if isinstance(bug, OutOfTime):
        return str(bug)
    return f"the analysis failed{describe(bug)}; please report this"
