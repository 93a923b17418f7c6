"""Submodules that only some recorded instances build: is the code's condition the recorded one?

The condition in the code decides. Where it is known in ``__init__``, it has to tell every recorded
case, or the class is refused. Where it compares something known with a shape that the code does not
tell, and the recorded condition is the same comparison, the recorded one completes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.evidence.evaluate import Unknown, evaluate
from nnx_migrate.evidence.presence import Presence
from nnx_migrate.evidence.seen import Place
from nnx_migrate.sizes.evidence import ClassEvidence
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.records import DISAGREE, known_inputs
from nnx_migrate.sizes.recorded_text import expression_of, recorded_text
from nnx_migrate.sizes.result import Conditional
from nnx_migrate.sizes.static_parameters import defaults_of
from nnx_migrate.source.walking import walk


@dataclass(frozen=True)
class Guard:
    """A condition that has to have a truth value for a place to be reached."""

    test: ast.expr
    holds: bool


def conditional_sites(analysis: ClassAnalysis) -> tuple[Conditional, ...]:
    """The submodules of a class that some recorded instance lacks.

    A contradiction becomes a problem of the class.
    """
    if analysis.evidence is None:
        return ()
    found = []
    for module in analysis.interpreter.built.values():
        place = analysis.evidence.place_of(module.call) if module.call is not None else None
        presence = analysis.evidence.recorded.presence.get(place) if place is not None else None
        if (
            presence is not None
            and presence.built
            and module.call is not None
            and place is not None
        ):
            found.append(_conditional(analysis, analysis.evidence, module.call, place, presence))
    return tuple(found)


def _conditional(
    analysis: ClassAnalysis,
    evidence: ClassEvidence,
    call: ast.Call,
    place: Place,
    presence: Presence,
) -> Conditional:
    guards = _guards(analysis, call)
    completed = bool(guards) and _complete(analysis, guards or [], call, presence)
    texts = [_text(analysis, one) for one in guards or ()]
    count = (call, presence.built, presence.instances)
    known = [text for text in texts if text is not None]
    if known and len(known) == len(texts):
        told = _compare(analysis, evidence, place, known)
        if told.built_anyway is not None:
            text = f"{DISAGREE} on whether this submodule is built: {told.built_anyway}"
            analysis.problems.append((call, text))
        if told.compared and told.not_called is None:
            note = f"it gives all {told.compared} recorded cases"
            source = "recorded" if completed else "both"
            return Conditional(*count, " and ".join(known), source, note)
        if told.not_called is not None:
            return Conditional(*count, " and ".join(known), "open", told.not_called)
    others = ", ".join(presence.alternatives)
    note = f"{others} would do as well" if others and presence.condition else presence.reason
    return Conditional(*count, presence.condition or "", "open", note)


def _guards(analysis: ClassAnalysis, call: ast.Call) -> list[Guard] | None:
    """Conditions around a call in its method; None where more than they decides."""
    for cls in analysis.root.info.mro:
        for method in cls.methods.values():
            if any(node is call for node in walk(method)):
                leaves = (
                    node.lineno < call.lineno
                    for node in walk(method)
                    if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break)
                )
                return None if any(leaves) else _around(method, call)
    return None


_UNCLEAR = (
    ast.For,
    ast.While,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.BoolOp,
    ast.Try,
    ast.Match,
    ast.Lambda,
    ast.FunctionDef,
)


def _around(node: ast.AST, call: ast.Call) -> list[Guard] | None:
    """Conditions from a node down to a call inside it."""
    if node is call:
        return []
    for child in ast.iter_child_nodes(node):
        if any(one is call for one in walk(child)):
            if isinstance(child, _UNCLEAR):
                return None
            inner = _around(child, call)
            if inner is None or not isinstance(node, ast.If | ast.IfExp) or child is node.test:
                return inner
            body = node.body if isinstance(node.body, list) else [node.body]
            return [Guard(node.test, any(child is one for one in body)), *inner]
    return None


def _text(analysis: ClassAnalysis, guard: Guard) -> str | None:
    """The condition as recorded calls are spelled; None when ``__init__`` does not know it."""
    text = _known(analysis, guard.test)
    if text is None:
        return None
    return text if guard.holds else f"not ({text})"


def _known(analysis: ClassAnalysis, node: ast.expr) -> str | None:
    """An expression as recorded calls are spelled, when it is known before any call."""
    if isinstance(node, ast.Constant):
        return ast.unparse(node)
    text = analysis.interpreter.statics.get(id(node))
    if text is None:
        return None
    size = Expr(ast.parse(text, mode="eval").body)
    opaque = any(
        ex.opaque_local(ex.input_of(name)[0]) is not None
        for name in size.names
        if ex.is_input(name)
    )
    return None if opaque else recorded_text(size)


@dataclass(frozen=True)
class _Told:
    """How many traces conditions tell, and the first one of each kind that they do not.

    What is built where they do not hold shows that they were misread. What is not seen where they
    hold may have been built and not called.
    """

    compared: int
    built_anyway: str | None = None
    not_called: str | None = None


def _compare(
    analysis: ClassAnalysis, evidence: ClassEvidence, place: Place, tests: Sequence[str]
) -> _Told:
    told, names, text = _Told(0), _defaults(analysis), " and ".join(tests)
    for run in evidence.recorded.runs:
        around = evidence.surroundings(run.instance, run.changes, names)
        try:
            reached = all(evaluate(test, around) for test in tests)
        except Unknown:
            continue
        if reached and place not in run.sites:
            told = replace(told, not_called=f"a recorded call without it has {text}")
        if not reached and place in run.sites:
            return replace(told, built_anyway=f"a recorded call with it does not have {text}")
        told = replace(told, compared=told.compared + 1)
    return told


def _defaults(analysis: ClassAnalysis) -> Mapping[str, object]:
    """Values of the parameters of ``__call__`` that a call may leave out."""
    found = analysis.root.info.find("__call__")
    nodes = defaults_of(found[1].args) if found else {}
    return {name: one.value for name, one in nodes.items() if isinstance(one, ast.Constant)}


_MIRRORED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
}


def _complete(
    analysis: ClassAnalysis, guards: list[Guard], call: ast.Call, presence: Presence
) -> bool:
    """Give the one comparison that the code leaves open the side that was recorded.

    Whether that was possible.
    """
    open_ones = [guard for guard in guards if _known(analysis, guard.test) is None]
    if len(guards) != 1 or len(open_ones) != 1 or presence.condition is None:
        return False
    if not open_ones[0].holds or presence.alternatives:
        return False
    recorded = ast.parse(presence.condition, mode="eval").body
    if not any(_agree(analysis, open_ones[0].test, one) for one in _both_ways(recorded)):
        return False
    size = expression_of(presence.condition, analysis.root.info, call)
    if size is None or not known_inputs(analysis, size):
        return False
    analysis.interpreter.statics[id(open_ones[0].test)] = size.text
    analysis.required.update(name for name in size.names if ex.is_input(name))
    text = f"that it is built where {presence.condition} is how it was recorded in"
    text += f" {presence.instances} instances and {presence.traces} traces, not read from the code"
    analysis.interpreter.review.append((call, text))
    return True


def _both_ways(node: ast.expr) -> Iterator[ast.Compare]:
    """A comparison, and the same one with its sides exchanged."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _MIRRORED:
            yield node
            yield ast.Compare(right, [_MIRRORED[type(op)]()], [left])


def _agree(analysis: ClassAnalysis, test: ast.expr, recorded: ast.Compare) -> bool:
    """Whether the code compares alike, with one side that it does not tell."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            pass
        case _:
            return False
    sides = ((left, recorded.left), (right, recorded.comparators[0]))
    known = [(text, ast.unparse(other)) for one, other in sides if (text := _known(analysis, one))]
    return (
        type(op) is type(recorded.ops[0])
        and len(known) == 1
        and all(text == other for text, other in known)
    )
