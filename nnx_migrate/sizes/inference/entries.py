"""Recorded sizes of arrays at the start of a loop, where the code does not tell them.

What a layer in a loop is given the first time is the size that enters the loop; from then on the code
tells the sizes. The first calls of all traces are solved as one size, and then every round of every
trace has to have the size that follows from it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Submodule
from nnx_migrate.evidence.solve import Observation, solve
from nnx_migrate.evidence.values import dimensions, numbers, opaque_parts
from nnx_migrate.sizes.evidence import ClassEvidence, SizeEvidence, wanted
from nnx_migrate.sizes.inference.class_analysis import INPUT, ClassAnalysis
from nnx_migrate.sizes.inference.consensus import agreed_size
from nnx_migrate.sizes.inference.records import known_inputs
from nnx_migrate.sizes.inference.rounds import rounds_of
from nnx_migrate.sizes.recorded_text import expression_of

_WIDTH = wanted("in_features", None)


def tell_entries(analysis: ClassAnalysis) -> None:
    """Give the sizes that loops carry the recorded size to start from, where nobody knows it."""
    if analysis.evidence is None:
        return
    for entries in analysis.interpreter.carried.values():
        for index, (name, first, last) in enumerate(entries):
            if not _is_opaque(first):
                continue
            for call in _calls_given(analysis, name):
                found = _first_size(analysis, analysis.evidence, call)
                if found is None:
                    continue
                entries[index] = (name, found.size, last)
                if _fits(analysis, analysis.evidence, name):
                    analysis.entries[name] = found
                    break
                entries[index] = (name, first, last)


def _is_opaque(size: Expr) -> bool:
    whole = INPUT.fullmatch(size.text)
    return whole is not None and ex.opaque_local(ex.input_of(size.text)[0]) is not None


def _calls_given(analysis: ClassAnalysis, name: str) -> Iterator[ast.Call]:
    """Constructor calls of layers whose input has a carried size."""
    for module in analysis.interpreter.built.values():
        if not isinstance(module, Submodule) or module.options:
            continue
        uses = analysis.root.records.get(id(module.call), [])
        size = agreed_size(uses, "in_features")[0] if uses else None
        if size is not None and size.text == name:
            yield module.call


def _first_size(
    analysis: ClassAnalysis, evidence: ClassEvidence, call: ast.Call
) -> SizeEvidence | None:
    """The one expression of what the first submodule is given that the call builds in each trace."""
    traces = evidence.rounds(call, _WIDTH, partial(rounds_of, analysis, call))
    seen: list[Observation] = []
    opaque: dict[int, str] = {}
    for first in (trace[0] for trace in traces):
        recorded = evidence.recorded.instances[first.instance]
        sources = {**dict(numbers(recorded.fields, "self")), **dimensions(recorded.inputs)}
        changed = frozenset(first.changes)
        seen.append(Observation(first.instance, changed, {**sources, **first.changes}, first.size))
        parts = (recorded.fields, *recorded.inputs.values())
        for name in (name for one in parts for name in opaque_parts(one)):
            opaque[first.instance] = name
    answer = solve(seen, opaque)
    if answer.expression is None:
        return None
    size = expression_of(answer.expression, analysis.root.info, call)
    if size is None or not known_inputs(analysis, size) or not all(map(ex.is_input, size.names)):
        return None
    return SizeEvidence(size, len({one.instance for one in seen}), len(seen), answer.alternatives)


def _fits(analysis: ClassAnalysis, evidence: ClassEvidence, name: str) -> bool:
    """Whether every round of every layer that is given the size was recorded with it."""
    compared = 0
    for call in _calls_given(analysis, name):
        rounds = partial(rounds_of, analysis, call)
        seen, contradiction = evidence.compare(call, _WIDTH, ex.name(name), rounds)
        if contradiction is not None:
            return False
        compared += seen
    return compared > 0
